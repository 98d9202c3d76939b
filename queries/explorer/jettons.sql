-- Jettons with their holders, transfers and swap volume.
--
-- $sort   text          sort key: holders, transfers or volume
-- $limit  integer       maximum number of rows
-- $offset integer  = 0  rows to skip
--
-- returns: workchain, account, holders (wallets with a balance), transfers (successful ones),
-- volume_ton (value of swaps in TON; NULL: none with a known price)
with held as (
    select
        jetton_workchain as workchain,
        jetton as account,
        count(*) filter (where balance > 0) as holders
    from latest('jetton_wallets')
    group by all
),

moved as (
    select
        jetton_workchain as workchain,
        jetton as account,
        count(*) filter (where not aborted) as transfers
    from jetton_transfers
    group by all
),

swapped as (
    select
        ton_raw_workchain(asset) as workchain,
        ton_raw_account(asset) as account,
        sum(value_ton) as volume_ton
    from (
        select
            asset_in as asset,
            value_ton
        from v_swaps
        where success
        union all
        select
            asset_out as asset,
            value_ton
        from v_swaps
        where success
    )
    where asset is not null
    group by all
),

listed as (
    select
        workchain,
        account,
        coalesce(holders, 0) as holders,
        coalesce(transfers, 0) as transfers,
        volume_ton
    from latest('jetton_masters')
    left join held using (workchain, account)
    left join moved using (workchain, account)
    left join swapped using (workchain, account)
)

select
    workchain,
    account,
    holders,
    transfers,
    volume_ton
from listed
order by
    case $sort
        when 'transfers' then transfers::double
        when 'volume' then volume_ton::double
        else holders::double
    end desc nulls last,
    workchain,
    account
limit $limit
offset $offset
