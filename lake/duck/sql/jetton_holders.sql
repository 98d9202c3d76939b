create or replace macro jetton_holders(master, "at" := null) as table
select
    ton_address(owner_workchain, owner) as address,
    owner_workchain as workchain,
    owner as account,
    label,
    symbol,
    ton_amount(balance, decimals) as balance,
    balance as balance_units,
    balance::double / sum(balance::double) over () as share,
    ton_address(wallets.workchain, wallets.account) as jetton_wallet,
    wallets.workchain as jetton_wallet_workchain,
    wallets.account as jetton_wallet_id,
    ton_time(utime) as time
from (
    select jetton_wallets.*
    from jetton_wallets
    join (
        -- Not in the lambda, which does not allow the master to be a subquery.
        select
            ton_account(form) as master_account,
            ton_workchain(form) as master_workchain
        from (select master as form)
    )
        on jetton = master_account and jetton_workchain = master_workchain
    where "at" is null or ton_time(utime) <= "at"
    qualify row_number() over (partition by workchain, account order by mc_seqno desc) = 1
) as wallets
left join v_jettons
    on wallets.jetton = v_jettons.account and wallets.jetton_workchain = v_jettons.workchain
left join labels
    on wallets.owner = labels.account and owner_workchain = labels.workchain
where balance > 0;
