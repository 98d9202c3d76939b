-- The ten largest holders of each jetton, with their addresses as wallets show them.
select
    asset,
    symbol,
    address,
    ton_friendly(workchain, account, bounceable := false) as wallet,
    balance
from balances_at('infinity')
where asset is not null and balance > 0
qualify row_number() over (partition by asset order by balance desc, address) <= 10
