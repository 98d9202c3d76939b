-- NFT collections at a masterchain block; in the order in which they were first seen.
--
-- $workchains       integer[]         workchains of the collections; none: any
-- $accounts         blob[]            collections
-- $owner_workchains integer[]         workchains of the owners; none: any
-- $owners           blob[]            owners
-- $mc_seqno         bigint    = null  as of this masterchain block; null: the newest
-- $limit            integer           most rows
-- $offset           integer   = 0     rows to pass over
--
-- returns: the columns of nft_collections, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from nft_collections
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
        next_item_index,
        owner_workchain,
        owner,
        content,
        min(lt) over (
            partition by
                workchain,
                account
        ) as first_lt
    from nft_collections
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
    next_item_index,
    owner_workchain,
    owner,
    content,
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
