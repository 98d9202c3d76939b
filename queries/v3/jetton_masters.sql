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
        (
            len($accounts::blob[]) = 0
            or (workchain, account) in (
                select
                    unnest($workchains::integer[]),
                    unnest($accounts::blob[])
            )
        )
        and (
            len($admins::blob[]) = 0
            or (admin_workchain, admin) in (
                select
                    unnest($admin_workchains::integer[]),
                    unnest($admins::blob[])
            )
        )
),

states as (
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
        min(lt) over (
            partition by
                workchain,
                account
        ) as first_lt
    from jetton_masters
    where
        ($mc_seqno is null or mc_seqno <= $mc_seqno)
        and (workchain, account) in (
            select
                workchain,
                account
            from matching
        )
    qualify row_number() over (
        partition by
            workchain,
            account
        order by mc_seqno desc
    ) = 1
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
from states
where
    (workchain, account, mc_seqno) in (
        select
            workchain,
            account,
            mc_seqno
        from matching
    )
order by
    first_lt,
    workchain,
    account
limit $limit
offset $offset
