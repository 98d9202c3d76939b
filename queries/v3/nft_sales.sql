-- Contracts that sell NFTs, at a masterchain block; by address.
--
-- $workchains integer[]         workchains of the contracts; none: any
-- $accounts   blob[]            contracts
-- $mc_seqno   bigint    = null  as of this masterchain block; null: the newest
-- $limit      integer           most rows
-- $offset     integer   = 0     rows to pass over
--
-- returns: the columns of nft_sales, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from nft_sales
    where
        (
            len($accounts::blob[]) = 0
            or (workchain, account) in (
                select
                    unnest($workchains::integer[]),
                    unnest($accounts::blob[])
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
        kind,
        nft_workchain,
        nft,
        nft_owner_workchain,
        nft_owner,
        marketplace_workchain,
        marketplace,
        created_at,
        details,
        min(lt) over (
            partition by
                workchain,
                account
        ) as first_lt
    from nft_sales
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
    kind,
    nft_workchain,
    nft,
    nft_owner_workchain,
    nft_owner,
    marketplace_workchain,
    marketplace,
    created_at,
    details,
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
    workchain,
    account
limit $limit
offset $offset
