create or replace view v_nft_sales as
select
    time,
    coalesce(action_type, 'nft_purchase') as event,
    item,
    item_workchain, -- part: ends
    item_id, -- part: ends
    collection,
    collection_workchain,
    collection_id,
    collection_name, -- part: collection
    seller,
    seller_workchain, -- part: ends
    seller_id, -- part: ends
    seller_label, -- part: label
    buyer,
    buyer_workchain, -- part: ends
    buyer_id, -- part: ends
    buyer_label, -- part: label
    price,
    price_units,
    marketplace_fee, -- part: fee
    marketplace_fee_units, -- part: fee
    royalty, -- part: fee
    royalty_units, -- part: fee
    marketplace, -- part: market
    sale_contract, -- part: ends
    sale_contract_workchain, -- part: ends
    sale_contract_id, -- part: ends
    trace_id,
    action_id,
    lt,
    mc_seqno,
    day
from v_nft_events as events
where events.event = 'sold';
