create or replace view v_nft_sales as
select
    ton_time(end_utime) as time,
    event,
    item,
    ton_raw_workchain(item) as item_workchain,
    ton_raw_account(item) as item_id,
    collection,
    ton_raw_workchain(collection) as collection_workchain,
    ton_raw_account(collection) as collection_id,
    collections.content ->> '$.name' as collection_name,
    seller,
    ton_raw_workchain(seller) as seller_workchain,
    ton_raw_account(seller) as seller_id,
    sellers.label as seller_label,
    buyer,
    ton_raw_workchain(buyer) as buyer_workchain,
    ton_raw_account(buyer) as buyer_id,
    buyers.label as buyer_label,
    ton_scaled(price, 9) as price,
    price as price_units,
    marketplace,
    sale as sale_contract,
    ton_raw_workchain(sale) as sale_contract_workchain,
    ton_raw_account(sale) as sale_contract_id,
    trace_id,
    action_id,
    end_lt as lt,
    events.mc_seqno,
    events.day
from nft_sales_events as events
left join latest_nft_collections as collections
    on ton_raw_account(collection) = collections.account
    and ton_raw_workchain(collection) = collections.workchain
left join labels as sellers on seller = sellers.address
left join labels as buyers on buyer = buyers.address
where event in ('nft_purchase', 'dns_purchase') and success;
