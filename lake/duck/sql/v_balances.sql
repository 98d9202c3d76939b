create or replace view v_balances as
select *
from balances_of('account_states', 'jetton_wallets', 'v_jettons');
