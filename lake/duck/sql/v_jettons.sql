create or replace view v_jettons as
select
    ton_address(workchain, account) as address,
    workchain,
    account,
    symbol,
    name,
    decimals,
    ton_amount(total_supply, decimals) as supply,
    total_supply as supply_units,
    mintable,
    ton_address(admin_workchain, admin) as admin,
    admin_workchain,
    admin as admin_id,
    uri,
    ton_time(utime) as time,
    mc_seqno
from (
    select
        masters.*,
        coalesce(content ->> '$.symbol', fetched ->> '$.symbol') as symbol,
        coalesce(content ->> '$.name', fetched ->> '$.name') as name,
        content ->> '$.uri' as uri,
        -- TEP-64: the default is 9, but off-chain content not fetched yet may differ.
        try_cast(
            coalesce(
                content ->> '$.decimals',
                fetched ->> '$.decimals',
                case
                    when content is not null and (uri is null or fetched is not null) then '9'
                end
            ) as utinyint
        )::integer as decimals
    from latest_jetton_masters as masters
    left join (
        select
            uri as fetched_uri,
            arg_max(content, fetched_at) as fetched
        from offchain_metadata
        group by uri
    ) as metadata
        on (masters.content ->> '$.uri') = metadata.fetched_uri
);
