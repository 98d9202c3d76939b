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
    select
        workchain,
        account,
        jetton_workchain,
        jetton,
        arg_max_null(owner_workchain, mc_seqno) as owner_workchain,
        arg_max_null(owner, mc_seqno) as owner,
        arg_max_null(balance, mc_seqno) as balance,
        arg_max_null(utime, mc_seqno) as utime
    from jetton_wallets
    join (
        -- Not in the lambda, which does not allow the master to be a subquery.
        select
            ton_raw_account(form) as master_account,
            ton_raw_workchain(form) as master_workchain
        from (select ton_raw(form) as form from (select master as form))
    )
        on jetton = master_account and jetton_workchain = master_workchain
    where "at" is null or ton_time(utime) <= "at"
    group by workchain, account, jetton_workchain, jetton
) as wallets
left join v_jettons
    on wallets.jetton = v_jettons.account and wallets.jetton_workchain = v_jettons.workchain
left join labels
    on wallets.owner = labels.account and owner_workchain = labels.workchain
where balance > 0;
