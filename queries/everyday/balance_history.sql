-- The balance of an account in TON and jettons after every change.
--
-- $account address = null   account; null: the one with most transactions
-- $jetton  address = null   only of this jetton; null: TON and every jetton
-- $limit   integer = 10000  maximum number of rows
--
-- chart: line x=time y=balance by=symbol
-- returns: time, asset (jetton master; NULL: TON), symbol, balance, balance_units; oldest first
with asked as (
    select
        ton_workchain(coalesce($account, busiest)) as workchain,
        ton_account(coalesce($account, busiest)) as account
    from (
        select ton_address(workchain, account) as busiest
        from transactions
        group by workchain, account
        order by
            count(*) desc,
            account
        limit 1
    )
)

select
    time,
    asset,
    symbol,
    balance,
    balance_units
from v_balances
where
    (workchain, account) in (select row(asked.workchain, asked.account) from asked)
    and ($jetton is null or (
        asset_id = ton_account($jetton) and asset_workchain = ton_workchain($jetton)
    ))
order by
    mc_seqno,
    lt,
    asset
limit $limit
