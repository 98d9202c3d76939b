-- Vesting wallets at a masterchain block; in the order in which they were first seen.
--
-- $workchains       integer[]         workchains of the wallets; none: any
-- $accounts         blob[]            wallets
-- $owner_workchains integer[]         workchains of owners and senders; none: any
-- $owners           blob[]            owners and senders
-- $listed           text[]            raw addresses; one on the whitelist will do as well
-- $mc_seqno         bigint    = null  as of this masterchain block; null: the newest
-- $limit            integer           most rows
-- $offset           integer   = 0     rows to pass over
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
