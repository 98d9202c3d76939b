-- Holders of a jetton, the largest first, now or at a time.
--
-- $jetton address   = null  jetton master; null: the one with most wallets
-- $at     timestamp = null  moment, UTC; null: the end of the lake
-- $limit  integer   = 100   maximum number of rows
--
-- chart: bar x=address y=balance
-- returns: address, label, symbol, balance, balance_units, share, jetton_wallet, time
select
    address,
    label,
    symbol,
    balance,
    balance_units,
    share,
    jetton_wallet,
    time
from jetton_holders(
    coalesce(
        $jetton,
        (
            select ton_address(jetton_workchain, jetton)
            from jetton_wallets
            group by jetton_workchain, jetton
            order by
                count(distinct account) desc,
                jetton
            limit 1
        )
    ),
    "at" := $at::timestamp
)
order by
    balance_units desc,
    address
limit $limit
