create or replace view v_daily as
with daily as (
    select
        try_cast(time as date) as date,
        count(*) as transactions,
        count(*) filter (where aborted) as failed,
        count(distinct (workchain, account)) as active_accounts,
        sum(total_fees) as fees,
        sum(compute_gas_used) as gas_used
    from transactions
    group by date
),
delivered as (
    select
        try_cast(tx_time as date) as date,
        count(*) as messages,
        sum(value) as volume
    from messages
    where direction = 'in'
    group by date
),
-- Separate from the other messages: a distinct count over some of the rows takes twice as long.
awake as (
    select
        date,
        count(*) as active_wallets
    from (
        select distinct
            try_cast(tx_time as date) as date,
            destination_workchain,
            destination
        from messages
        where direction = 'in' and kind = 'ext_in'
    )
    group by date
),
jettons as (
    select
        try_cast(tx_time as date) as date,
        count(*) as jetton_transfers
    from jetton_transfers
    where not aborted
    group by date
),
swapped as (
    select
        try_cast(time as date) as date,
        count(*) as swaps,
        sum(value_ton) as swap_volume_ton
    from v_swaps
    where success
    group by date
),
deployed as (
    select
        date,
        sum(contracts) as new_contracts,
        to_json(
            map(
                list(ton_base64(code_hash) order by contracts desc, code_hash) filter (
                    where code_hash is not null
                ),
                list(contracts order by contracts desc, code_hash) filter (
                    where code_hash is not null
                )
            )
        )::varchar as new_contracts_by_code
    from (
        select
            try_cast(time as date) as date,
            code_hash,
            count(*) as contracts
        from v_new_contracts
        group by all
    )
    group by date
)
select
    date,
    transactions,
    failed,
    active_accounts,
    coalesce(active_wallets, 0) as active_wallets,
    coalesce(messages, 0) as messages,
    ton_scaled(fees, 9) as fees,
    gas_used::decimal(38, 0) as gas_used,
    ton_scaled(coalesce(volume, 0), 9) as ton_volume,
    coalesce(jetton_transfers, 0) as jetton_transfers,
    coalesce(swaps, 0) as swaps,
    swap_volume_ton,
    coalesce(new_contracts, 0)::bigint as new_contracts,
    new_contracts_by_code
from daily
left join delivered using (date)
left join awake using (date)
left join jettons using (date)
left join swapped using (date)
left join deployed using (date);
