-- Jetton masters at a masterchain block, ordered by first appearance.
--
-- $workchains       integer[] = []    workchains of the masters
-- $accounts         blob[]    = []    masters; empty: any
-- $admin_workchains integer[] = []    workchains of the administrators
-- $admins           blob[]    = []    administrators; empty: any
-- $mc_seqno         bigint    = null  state at this masterchain block; null: newest
-- $limit            integer           maximum number of rows
-- $offset           integer   = 0     rows to skip
--
-- returns: the columns of jetton_masters, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from jetton_masters
    where
        in_pairs_or_any(workchain, account, $workchains, $accounts)
        and in_pairs_or_any(admin_workchain, admin, $admin_workchains, $admins)
)

select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    total_supply,
    mintable,
    admin_workchain,
    admin,
    content,
    wallet_code_hash,
    first_lt
from matching_as_of('jetton_masters', 'matching', $mc_seqno)
order by
    first_lt,
    workchain,
    account
limit $limit
offset $offset
