-- Whom an account exchanged most transfers with.
--
-- $account address = null  account; null: the one with most transactions
-- $limit   integer = 50    maximum number of rows
--
-- chart: bar x=address y=transfers_in,transfers_out
-- returns: address, label, transfers_in, transfers_out, received_ton, sent_ton (value in TON, where
-- known), last_time; most transfers first
with asked as (
    select coalesce($account, busiest) as address
    from (
        select ton_address(workchain, account) as busiest
        from transactions
        group by workchain, account
        order by
            count(*) desc,
            account
        limit 1
    )
),

keyed as (
    select
        ton_workchain(address) as workchain,
        ton_account(address) as account
    from asked
),

moved as (
    select
        sender as address,
        sender_label as label,
        true as incoming,
        value_ton,
        time
    from v_transfers
    join keyed on recipient_id = account and recipient_workchain = workchain
    union all
    select
        recipient as address,
        recipient_label as label,
        false as incoming,
        value_ton,
        time
    from v_transfers
    join keyed on sender_id = account and sender_workchain = workchain
)

select
    address,
    label,
    count(*) filter (where incoming) as transfers_in,
    count(*) filter (where not incoming) as transfers_out,
    sum(value_ton) filter (where incoming) as received_ton,
    sum(value_ton) filter (where not incoming) as sent_ton,
    max(time) as last_time
from moved
group by address, label
order by
    count(*) desc,
    address
limit $limit
