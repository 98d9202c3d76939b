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
            or (sender_workchain, sender) in (
                select
                    unnest($owner_workchains::integer[]),
                    unnest($owners::blob[])
            )
            or list_has_any(whitelist, $listed::text[])
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
        min(lt) over (
            partition by
                workchain,
                account
        ) as first_lt
    from vesting_contracts
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
