-- The accounts that an account exchanged most transfers with.
--
-- $account address = null  account; null: the wallet that received most external messages
-- $limit   integer = 50    maximum number of rows
--
-- chart: bar x=address y=transfers_in,transfers_out
-- returns: address, label, transfers_in, transfers_out, received_ton, sent_ton (value in TON, where
-- known), last_time; most transfers first
with asked as (
    from account_or_busiest($account, 'messages')
),

moves as not materialized (
    from moved_assets(
        'messages',
        'jetton_transfers',
        'nft_transfers',
        'v_jettons',
        'dex_prices',
        'nft_collections'
    )
),

counted as (
    select
        if(outgoing, destination_workchain, source_workchain) as workchain,
        if(outgoing, destination, source) as account,
        count(*) as transfers,
        count(*) filter (where incoming) as transfers_in,
        count(*) filter (where outgoing) as transfers_out,
        if(transfers_in = 0, 0, sum(value_ton) filter (where incoming)) as received_ton,
        if(transfers_out = 0, 0, sum(value_ton) filter (where outgoing)) as sent_ton,
        max(time) as last_time
    from moves_of('moves', 'asked')
    group by all
)

select
    ton_address(counted.workchain, counted.account) as address,
    label,
    transfers_in,
    transfers_out,
    received_ton,
    sent_ton,
    last_time
from counted
left join labels
    on counted.account = labels.account and counted.workchain = labels.workchain
order by
    transfers desc,
    address
limit $limit
