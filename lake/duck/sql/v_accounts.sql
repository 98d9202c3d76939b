create or replace view v_accounts as
with begun as not materialized (
    select
        workchain,
        account,
        min(time) filter (where end_status = 'active') as deployed_at,
        arg_min(
            {'time': time, 'lt': lt, 'mc_seqno': mc_seqno, 'day': day},
            lt
        ) filter (where orig_status = 'nonexist') as first
    from transactions
    -- Of most rows, those of active accounts, this reads no other column.
    where
        orig_status <> 'active'
        and (
            (orig_status = 'nonexist' and end_status in ('uninit', 'active'))
            or (orig_status = 'uninit' and end_status = 'active')
        )
    group by workchain, account
),
funded as not materialized (
    select
        begun.*,
        received.source_workchain as funder_workchain, -- part: funder
        received.source as funder, -- part: funder
    from begun
    left join messages as received -- part: funder
        on begun.account = received.tx_account
        and first.lt = received.tx_lt
        and begun.workchain = received.tx_workchain
        and first.mc_seqno = received.mc_seqno -- many
        and first.day = received.day
        and received.direction = 'in'
        and received.kind = 'int'
)
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
    deployed_at, -- part: begun
    ton_address(funder_workchain, funder) as first_funded_by, -- part: funder
    funder_workchain as first_funded_by_workchain, -- part: funder
    funder as first_funded_by_id, -- part: funder
    first.time as first_funded_at, -- part: begun
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
left join funded -- part: begun
    on states.account = funded.account and states.workchain = funded.workchain
left join known_codes('interfaces') as codes -- part: code
    on states.code_hash = codes.code_hash
;
