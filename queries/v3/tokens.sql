-- What some accounts are, of all that tokens are made of, and what they say of themselves.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     account ids
--
-- returns: kind (a table), account, and its columns of the newest state; by account and kind
with items as (
    select
        'nft_items' as kind,
        workchain,
        account,
        item_index,
        content,
        cast(null as decimal(38, 0)) as balance,
        cast(null as integer) as owner_workchain,
        cast(null as blob) as owner,
        cast(null as integer) as jetton_workchain,
        cast(null as blob) as jetton
    from nft_items
    where (workchain, account) in (
        select
            unnest($workchains::integer[]),
            unnest($accounts::blob[])
    )
    qualify row_number() over (
        partition by
            workchain,
            account
        order by mc_seqno desc
    ) = 1
),

collections as (
    select
        'nft_collections' as kind,
        workchain,
        account,
        cast(null as text) as item_index,
        content,
        cast(null as decimal(38, 0)) as balance,
        cast(null as integer) as owner_workchain,
        cast(null as blob) as owner,
        cast(null as integer) as jetton_workchain,
        cast(null as blob) as jetton
    from nft_collections
    where (workchain, account) in (
        select
            unnest($workchains::integer[]),
            unnest($accounts::blob[])
    )
    qualify row_number() over (
        partition by
            workchain,
            account
        order by mc_seqno desc
    ) = 1
),

masters as (
    select
        'jetton_masters' as kind,
        workchain,
        account,
        cast(null as text) as item_index,
        content,
        cast(null as decimal(38, 0)) as balance,
        cast(null as integer) as owner_workchain,
        cast(null as blob) as owner,
        cast(null as integer) as jetton_workchain,
        cast(null as blob) as jetton
    from jetton_masters
    where (workchain, account) in (
        select
            unnest($workchains::integer[]),
            unnest($accounts::blob[])
    )
    qualify row_number() over (
        partition by
            workchain,
            account
        order by mc_seqno desc
    ) = 1
),

wallets as (
    select
        'jetton_wallets' as kind,
        workchain,
        account,
        cast(null as text) as item_index,
        cast(null as text) as content,
        balance,
        owner_workchain,
        owner,
        jetton_workchain,
        jetton
    from jetton_wallets
    where (workchain, account) in (
        select
            unnest($workchains::integer[]),
            unnest($accounts::blob[])
    )
    qualify row_number() over (
        partition by
            workchain,
            account
        order by mc_seqno desc
    ) = 1
)

select * from items
union all
select * from collections
union all
select * from masters
union all
select * from wallets
order by
    workchain,
    account,
    kind
