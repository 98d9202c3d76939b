-- Jetton masters at a masterchain block; in the order in which they were first seen.
--
-- $workchains       integer[]         workchains of the masters; none: any
-- $accounts         blob[]            masters
-- $admin_workchains integer[]         workchains of the administrators; none: any
-- $admins           blob[]            administrators
-- $mc_seqno         bigint    = null  as of this masterchain block; null: the newest
-- $limit            integer           most rows
-- $offset           integer   = 0     rows to pass over
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
