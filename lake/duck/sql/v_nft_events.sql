create or replace view v_nft_events as
with contracts as (
    select
        workchain,
        account,
        nft_workchain,
        nft,
        arg_max(nft_owner_workchain, mc_seqno) as owner_workchain,
        arg_max(nft_owner, mc_seqno) as owner,
        arg_max(ton_address(marketplace_workchain, marketplace), mc_seqno) as market,
        arg_max(details, mc_seqno) as terms
    from nft_sales
    where nft is not null
    group by workchain, account, nft_workchain, nft
),
-- The time is computed below the joins, where a filter on it leaves few rows.
classified as not materialized (
    select
        coalesce(
            map {
                'nft_purchase': 'sold',
                'dns_purchase': 'sold',
                'auction_bid': 'bid',
                'auction_outbid': 'outbid',
                'nft_put_on_sale': 'listed',
                'nft_put_on_auction': 'auctioned',
                'teleitem_start_auction': 'auctioned',
                'nft_update_sale': 'changed',
                'nft_finish_auction': 'ended',
                'dns_release': 'released'
            } [event],
            'cancelled'
        ) as event,
        event as action_type,
        item,
        collection,
        seller,
        buyer,
        nft_price(price) as price,
        marketplace,
        marketplace_address,
        sale,
        trace_id,
        action_id,
        ton_time(end_utime) as time,
        end_lt as lt,
        mc_seqno,
        day
    from nft_sales_events
    where success
),
minting as not materialized (
    select
        *,
        ton_time(end_utime) as time
    from actions
    where type = 'nft_mint' and success
),
minted as not materialized (
    select
        'minted' as event,
        type as action_type,
        asset_secondary as item,
        asset as collection,
        source as seller,
        ton_address(items.owner_workchain, items.owner) as buyer, -- part: owner
        trace_id,
        action_id,
        minting.time,
        end_lt as lt,
        minting.mc_seqno,
        minting.day
    from minting
    asof left join nft_items as items -- part: owner
        on ton_raw_account(asset_secondary) = items.account
        and ton_raw_workchain(asset_secondary) = items.workchain
        and minting.mc_seqno >= items.mc_seqno
),
-- Transfers to and from a contract of a sale. The classifier takes those of buyers who send an
-- op-code for mere transfers.
matched as not materialized (
    select
        case
            when transfers.new_owner = contracts.account
                then case when terms ->> '$.full_price' is null then 'auctioned' else 'listed' end
            when new_owner = owner and new_owner_workchain = owner_workchain then 'cancelled'
            when 'true' in (terms ->> '$.is_complete', terms ->> '$.end_flag') then 'sold'
        end as event,
        transfers.* exclude (collection),
        transfers.collection as collection_id,
        owner_workchain as seller_workchain,
        owner as seller_id,
        terms,
        market as marketplace_address,
        contracts.workchain as sale_workchain,
        contracts.account as sale_id
    from each_move('nft_transfers') as transfers
    join contracts
        on transfers.account = nft
        and transfers.workchain = nft_workchain
        and (
            (new_owner = contracts.account and new_owner_workchain = contracts.workchain)
            or (old_owner = contracts.account and old_owner_workchain = contracts.workchain)
        )
    where not aborted
),
moved as not materialized (
    select
        event,
        matched.workchain as item_workchain,
        matched.account as item_id,
        collection_workchain,
        collection_id,
        seller_workchain,
        seller_id,
        case when event = 'sold' then new_owner_workchain end as buyer_workchain,
        case when event = 'sold' then new_owner end as buyer_id,
        nft_price(case
            when event = 'sold' then coalesce(terms ->> '$.full_price', terms ->> '$.last_bid')
            when event = 'listed' then terms ->> '$.full_price'
        end) as price,
        marketplace_address,
        sale_workchain,
        sale_id,
        ton_address(item_workchain, item_id) as item,
        ton_address(collection_workchain, collection_id) as collection,
        ton_address(seller_workchain, seller_id) as seller,
        ton_address(buyer_workchain, buyer_id) as buyer,
        ton_address(sale_workchain, sale_id) as sale, -- part: ends
        trace_id,
        tx_time as time,
        matched.lt,
        matched.mc_seqno,
        matched.day
    from matched
    left join transaction_traces as traced
        on matched.account = traced.account
        and matched.lt = traced.lt
        and matched.workchain = traced.workchain
        and matched.mc_seqno = traced.mc_seqno -- many
        and matched.day = traced.day
    where event is not null
),
other_events as not materialized (
    from classified
    union all by name -- part: minted
        from minted
),
-- With the keys of those that the tables of moves have as keys, by which filters prune them.
happened as not materialized (
    select
        *,
        ton_raw_workchain(item) as item_workchain, -- part: ends
        ton_raw_account(item) as item_id, -- part: ends
        ton_raw_workchain(collection) as collection_workchain,
        ton_raw_account(collection) as collection_id,
        ton_raw_workchain(seller) as seller_workchain, -- part: ends
        ton_raw_account(seller) as seller_id, -- part: ends
        ton_raw_workchain(buyer) as buyer_workchain, -- part: ends
        ton_raw_account(buyer) as buyer_id, -- part: ends
        ton_raw_workchain(sale) as sale_workchain, -- part: ends
        ton_raw_account(sale) as sale_id, -- part: ends
    from other_events
    union all by name -- part: moved
        select moved.*
        from moved
        anti join classified using (trace_id, item, event)
),
events as not materialized (
    select
        happened.*,
        case when event in ('sold', 'listed') then terms end as paid, -- part: fee
        coalesce( -- part: fee
            try_cast(paid ->> '$.marketplace_fee' as decimal(38, 0)),
            nft_share(price, paid, 'mp_fee_factor', 'mp_fee_base')
            ) as marketplace_fee,
        coalesce( -- part: fee
            try_cast(paid ->> '$.royalty_amount' as decimal(38, 0)),
            nft_share(price, paid, 'royalty_fee_factor', 'royalty_fee_base'),
            nft_share(price, paid, 'royalty_numerator', 'royalty_denominator')
            ) as royalty,
    from happened
    left join contracts -- part: fee
        on sale_id = contracts.account
        and sale_workchain = contracts.workchain
        and item_id = nft
        and item_workchain = nft_workchain
)
select
    events.time,
    event,
    action_type,
    item,
    item_workchain, -- part: ends
    item_id, -- part: ends
    events.collection,
    events.collection_workchain,
    events.collection_id,
    collections.name as collection_name, -- part: collection
    seller,
    seller_workchain, -- part: ends
    seller_id, -- part: ends
    sellers.label as seller_label, -- part: label
    buyer,
    buyer_workchain, -- part: ends
    buyer_id, -- part: ends
    buyers.label as buyer_label, -- part: label
    ton_amount(price, 9) as price,
    price as price_units,
    ton_amount(marketplace_fee, 9) as marketplace_fee, -- part: fee
    marketplace_fee as marketplace_fee_units, -- part: fee
    ton_amount(royalty, 9) as royalty, -- part: fee
    royalty as royalty_units, -- part: fee
    coalesce(marketplace, markets.label) as marketplace, -- part: market
    sale as sale_contract, -- part: ends
    sale_workchain as sale_contract_workchain, -- part: ends
    sale_id as sale_contract_id, -- part: ends
    trace_id,
    action_id,
    events.lt,
    events.mc_seqno,
    events.day
from events
left join collection_names('nft_collections') as collections -- part: collection
    on events.collection_id = collections.account
    and events.collection_workchain = collections.workchain
left join labels as sellers on seller = sellers.address -- part: label
left join labels as buyers on buyer = buyers.address -- part: label
left join labels as markets on marketplace_address = markets.address -- part: market
;
