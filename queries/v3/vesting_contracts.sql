-- Vesting wallets at a masterchain block, ordered by first appearance.
--
-- $workchains       integer[] = []    workchains of the wallets
-- $accounts         blob[]    = []    wallets; empty: any
-- $owner_workchains integer[] = []    workchains of owners and senders
-- $owners           blob[]    = []    owners and senders; empty: any
-- $listed           text[]    = []    raw addresses; a match on the whitelist counts as well
-- $mc_seqno         bigint    = null  state at this masterchain block; null: newest
-- $limit            integer           maximum number of rows
-- $offset           integer   = 0     rows to skip
--
-- returns: the columns of vesting_contracts, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from vesting_contracts
    where
        in_pairs_or_any(workchain, account, $workchains, $accounts)
        and (
            len($owners::blob[]) = 0
            or in_pairs(owner_workchain, owner, $owner_workchains, $owners)
            or in_pairs(sender_workchain, sender, $owner_workchains, $owners)
            or list_has_any(whitelist, $listed::text[])
        )
)

select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    start_time,
    total_duration,
    unlock_period,
    cliff_duration,
    total_amount,
    sender_workchain,
    sender,
    owner_workchain,
    owner,
    whitelist,
    first_lt
from matching_as_of('vesting_contracts', 'matching', $mc_seqno)
order by
    first_lt,
    workchain,
    account
limit $limit
offset $offset
