-- Jetton wallets at a masterchain block.
--
-- $workchains        integer[]          workchains of the wallets; none: any
-- $accounts          blob[]             wallets
-- $owner_workchains  integer[]          workchains of the owners; none: any
-- $owners            blob[]             owners
-- $jetton_workchains integer[]          workchains of the masters; none: any
-- $jettons           blob[]             masters
-- $exclude_zero      boolean   = false  leave out those without jettons
-- $by_account        boolean   = false  order by address
-- $by_owner          boolean   = false  order by owner first
-- $by_balance        boolean   = false  order by balance instead of first appearance
-- $descending        boolean   = true   most jettons first
-- $mc_seqno          bigint    = null   as of this masterchain block; null: the newest
-- $limit             integer            most rows
-- $offset            integer   = 0      rows to pass over
--
-- returns: the columns of jetton_wallets, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from jetton_wallets
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
            len($owners::blob[]) = 0
            or (owner_workchain, owner) in (
                select
                    unnest($owner_workchains::integer[]),
                    unnest($owners::blob[])
            )
        )
        and (
            len($jettons::blob[]) = 0
            or (jetton_workchain, jetton) in (
                select
                    unnest($jetton_workchains::integer[]),
                    unnest($jettons::blob[])
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
        balance,
        owner_workchain,
        owner,
        jetton_workchain,
        jetton,
        is_claimed,
        min(lt) over (
            partition by
                workchain,
                account
        ) as first_lt
    from jetton_wallets
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
    balance,
    owner_workchain,
    owner,
    jetton_workchain,
    jetton,
    is_claimed,
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
    and (not $exclude_zero or balance > 0)
order by
    case when $by_owner then owner_workchain end,
    case when $by_owner then owner end,
    case when $by_balance and $descending then balance end desc,
    case when $by_balance and not $descending then balance end,
    case when not $by_account then first_lt end,
    workchain,
    account
limit $limit
offset $offset
