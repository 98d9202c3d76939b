create or replace view v_accounts as
select
    ton_address(states.workchain, states.account) as address,
    states.workchain,
    states.account,
    coalesce(labels.label, code_label) as label, -- part: code
    case when labels.label is null then code_category else labels.category end as category, -- part: code
    domains.name, -- part: domain
    codes.interfaces, -- part: code
    states.account_status as status,
    ton_coins(states.balance)::decimal(38, 9) as balance,
    states.balance as balance_units,
    states.code_hash,
    states.last_trans_lt as last_lt,
    states.last_trans_hash as last_tx_hash,
    begun.deployed_at, -- part: begun
    ton_address(funded.workchain, funded.account) as first_funded_by, -- part: begun
    funded.workchain as first_funded_by_workchain, -- part: begun
    funded.account as first_funded_by_id, -- part: begun
    funded.time as first_funded_at, -- part: begun
    ton_time(states.utime) as time,
    states.mc_seqno
from latest_account_states as states
left join labels -- part: code
    on states.account = labels.account and states.workchain = labels.workchain
left join ( -- part: domain
    select
        wallet_workchain,
        wallet,
        min(domain) as name
    from latest_dns_records
    where wallet is not null
    group by wallet_workchain, wallet
) as domains -- part: domain
    on states.account = domains.wallet and states.workchain = domains.wallet_workchain
left join ( -- part: begun
    select
        transactions.workchain,
        transactions.account,
        min(time) filter (where end_status = 'active') as deployed_at,
        arg_min(
            {'workchain': source_workchain, 'account': source, 'time': time},
            lt
        ) filter (where orig_status = 'nonexist') as funded
    from transactions
    left join messages
        on transactions.account = messages.tx_account
        and transactions.lt = messages.tx_lt
        and transactions.workchain = messages.tx_workchain
        and transactions.mc_seqno = messages.mc_seqno -- many
        and transactions.day = messages.day
        and messages.direction = 'in'
        and messages.kind = 'int'
    -- Of most rows, those of active accounts, this reads no other column.
    where
        orig_status <> 'active'
        and (
            (orig_status = 'nonexist' and end_status in ('uninit', 'active'))
            or (orig_status = 'uninit' and end_status = 'active')
        )
    group by transactions.workchain, transactions.account
) as begun -- part: begun
    on states.account = begun.account and states.workchain = begun.workchain
left join known_codes('interfaces') as codes -- part: code
    on states.code_hash = codes.code_hash
;
