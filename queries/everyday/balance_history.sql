-- The balance of an account in TON and jettons after every change.
--
-- $account address = null   account; null: the wallet that received most external messages
-- $jetton  address = null   only of this jetton; null: TON and every jetton
-- $limit   integer = 10000  maximum number of rows
--
-- chart: line x=time y=balance by=symbol
-- returns: time, asset (jetton master; NULL: TON), symbol, balance, balance_units; oldest first
select
    time,
    asset,
    symbol,
    balance,
    balance_units
from v_balances
where
    (workchain, account) in (
        select
            asked.workchain,
            asked.account
        from account_or_busiest($account, 'messages') as asked
    )
    and ($jetton is null or (
        asset_id = ton_account($jetton) and asset_workchain = ton_workchain($jetton)
    ))
order by
    mc_seqno,
    lt,
    asset,
    jetton_wallet
limit $limit
