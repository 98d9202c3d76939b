create or replace macro balances_at(ts) as table
select *
from v_balances
where time <= ts
qualify row_number() over (
    partition by workchain, account, asset_workchain, asset_id, jetton_wallet_workchain, jetton_wallet_id
    order by mc_seqno desc, block_seqno desc
) = 1;
