-- Multisig orders at a masterchain block, ordered by first appearance.
--
-- $workchains          integer[] = []    workchains of the orders
-- $accounts            blob[]    = []    orders; empty: any
-- $multisig_workchains integer[] = []    workchains of the multisig wallets
-- $multisigs           blob[]    = []    multisig wallets; empty: any
-- $descending          boolean   = true  newest first
-- $mc_seqno            bigint    = null  state at this masterchain block; null: newest
-- $limit               integer           maximum number of rows
-- $offset              integer   = 0     rows to skip
--
-- returns: the columns of multisig_orders, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from multisig_orders
    where
        in_pairs_or_any(workchain, account, $workchains, $accounts)
        and in_pairs_or_any(multisig_workchain, multisig, $multisig_workchains, $multisigs)
)

select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    multisig_workchain,
    multisig,
    order_seqno,
    threshold,
    sent_for_execution,
    signers,
    approvals_mask,
    approvals_num,
    expiration_date,
    order_boc,
    first_lt
from matching_as_of('multisig_orders', 'matching', $mc_seqno)
order by
    case when $descending then first_lt end desc,
    case when not $descending then first_lt end,
    case when $descending then workchain end desc,
    case when $descending then account end desc,
    workchain,
    account
limit $limit
offset $offset
