create or replace view v_balances as
select
    ton_time(utime) as time,
    ton_address(states.workchain, states.account) as address,
    states.workchain,
    states.account,
    label,
    null::varchar as asset,
    null::integer as asset_workchain,
    null::blob as asset_id,
    'TON' as symbol,
    ton_coins(balance)::decimal(38, 9) as balance,
    balance::decimal(38, 0) as balance_units,
    null::varchar as jetton_wallet,
    null::integer as jetton_wallet_workchain,
    null::blob as jetton_wallet_id,
    last_trans_lt as lt,
    mc_seqno,
    block_seqno,
    day
from account_states as states
left join labels
    on states.account = labels.account and states.workchain = labels.workchain
union all
select
    ton_time(utime) as time,
    ton_address(owner_workchain, owner) as address,
    owner_workchain as workchain,
    owner as account,
    label,
    ton_address(jetton_workchain, jetton) as asset,
    jetton_workchain as asset_workchain,
    jetton as asset_id,
    symbol,
    ton_scaled(balance, decimals) as balance,
    balance as balance_units,
    ton_address(wallets.workchain, wallets.account) as jetton_wallet,
    wallets.workchain as jetton_wallet_workchain,
    wallets.account as jetton_wallet_id,
    lt,
    wallets.mc_seqno,
    null as block_seqno,
    day
from jetton_wallets as wallets
left join v_jettons
    on wallets.jetton = v_jettons.account and wallets.jetton_workchain = v_jettons.workchain
left join labels
    on wallets.owner = labels.account and owner_workchain = labels.workchain;
