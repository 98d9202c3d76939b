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
    -- The newest of each column that is read: less than half of finding the newest row by a join.
    from (
        select
            workchain,
            account,
            arg_max_null(content, mc_seqno) as content,
            arg_max_null(total_supply, mc_seqno) as total_supply,
            arg_max_null(mintable, mc_seqno) as mintable,
            arg_max_null(admin_workchain, mc_seqno) as admin_workchain,
            arg_max_null(admin, mc_seqno) as admin,
            arg_max_null(utime, mc_seqno) as utime,
            max(mc_seqno) as mc_seqno
        from jetton_masters
        group by workchain, account
    ) as masters
    left join (
        select
            uri as fetched_uri,
            arg_max(content, fetched_at) as fetched
        from offchain_metadata
        group by uri
    ) as metadata
        on (masters.content ->> '$.uri') = metadata.fetched_uri
);
