create or replace view v_daily as
with
delivered as ( -- part: delivered
    select
        try_cast(tx_time as date) as date,
        count(*) as messages,
        sum(value) as volume
    from messages
    where direction = 'in'
    group by date
), -- part: delivered
-- Separate from the other messages: a distinct count over some of the rows takes twice as long.
awake as ( -- part: awake
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
), -- part: awake
jettons as ( -- part: jettons
    select
        try_cast(tx_time as date) as date,
        count(*) as jetton_transfers
    from jetton_transfers
    where not aborted
    group by date
), -- part: jettons
swapped as ( -- part: price
    select
        try_cast(time as date) as date,
        count(*) as swaps,
        sum(value_ton) as swap_volume_ton
    from v_swaps
    where success
    group by date
), -- part: price
deployed as ( -- part: deployed
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
), -- part: deployed
daily as (
    select
        try_cast(time as date) as date,
        count(*) as transactions,
        count(*) filter (where aborted) as failed,
        count(distinct (workchain, account)) as active_accounts,
        sum(total_fees) as fees,
        sum(compute_gas_used) as gas_used
    from transactions
    group by date
)
select
    date,
    transactions,
    failed,
    active_accounts,
    coalesce(active_wallets, 0) as active_wallets, -- part: awake
    coalesce(messages, 0) as messages, -- part: delivered
    ton_scaled(fees, 9) as fees,
    gas_used::decimal(38, 0) as gas_used,
    ton_scaled(coalesce(volume, 0), 9) as ton_volume, -- part: delivered
    coalesce(jetton_transfers, 0) as jetton_transfers, -- part: jettons
    coalesce(swaps, 0) as swaps, -- part: price
    swap_volume_ton, -- part: price
    coalesce(new_contracts, 0)::bigint as new_contracts, -- part: deployed
    new_contracts_by_code, -- part: deployed
from daily
left join delivered using (date) -- part: delivered
left join awake using (date) -- part: awake
left join jettons using (date) -- part: jettons
left join swapped using (date) -- part: price
left join deployed using (date) -- part: deployed
;
