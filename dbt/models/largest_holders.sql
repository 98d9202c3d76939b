-- The ten largest holders of each jetton.
with newest as (
    select
        asset,
        symbol,
        address,
        balance
    from {{ source('tonlake', 'v_balances') }}
    where asset is not null
    qualify row_number() over (partition by asset, jetton_wallet order by mc_seqno desc) = 1
)

select
    asset,
    symbol,
    address,
    balance
from newest
where balance > 0
qualify row_number() over (partition by asset order by balance desc, address) <= 10
