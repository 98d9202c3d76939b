-- Multisig wallets at a masterchain block, ordered by first appearance.
--
-- $workchains integer[] = []    workchains of the wallets
-- $accounts   blob[]    = []    wallets; empty: any
-- $members    text[]    = []    raw addresses of signers or proposers; empty: any
-- $descending boolean   = true  newest first
-- $mc_seqno   bigint    = null  state at this masterchain block; null: newest
-- $limit      integer           maximum number of rows
-- $offset     integer   = 0     rows to skip
--
-- returns: the columns of multisig_wallets, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from multisig_wallets
    where
        in_pairs_or_any(workchain, account, $workchains, $accounts)
        and (
            len($members::text[]) = 0
            or list_has_any(signers, $members::text[])
            or list_has_any(proposers, $members::text[])
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
    next_order_seqno,
    threshold,
    signers,
    proposers,
    first_lt
from matching_as_of('multisig_wallets', 'matching', $mc_seqno)
order by
    case when $descending then first_lt end desc,
    case when not $descending then first_lt end,
    case when $descending then workchain end desc,
    case when $descending then account end desc,
    workchain,
    account
limit $limit
offset $offset
