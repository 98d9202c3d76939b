create or replace view v_nft_sales as
select
    time,
    coalesce(action_type, 'nft_purchase') as event,
    item,
    item_workchain,
    item_id,
    collection,
    collection_workchain,
    collection_id,
    collection_name, -- part: collection
    seller,
    seller_workchain,
    seller_id,
    seller_label, -- part: label
    buyer,
    buyer_workchain,
    buyer_id,
    buyer_label, -- part: label
    price,
    price_units,
    marketplace_fee, -- part: fee
    marketplace_fee_units, -- part: fee
    royalty, -- part: fee
    royalty_units, -- part: fee
    marketplace, -- part: market
    sale_contract,
    sale_contract_workchain,
    sale_contract_id,
    trace_id,
    action_id,
    lt,
    mc_seqno,
    day
from v_nft_events as events
where events.event = 'sold';
