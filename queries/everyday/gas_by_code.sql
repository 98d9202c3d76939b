-- Contract codes that use most gas.
--
-- By the code of the account's newest state: a transaction does not name its code.
--
-- $first date    = null  first UTC day; null: of the lake
-- $last  date    = null  last UTC day; null: of the lake
-- $limit integer = 50    maximum number of rows
--
-- chart: bar x=code_hash y=gas_used
-- returns: code_hash, interfaces, accounts, transactions, gas_used, fees in TON; most gas first
with used as (
    select
        workchain,
        account,
        count(*) as transactions,
        sum(compute_gas_used) as gas_used,
        sum(total_fees) as fees
    from transactions
    where in_days(time, $first, $last)
    group by workchain, account
),

-- Not latest_account_states, whose join of all accounts takes twice as long.
newest as (
    select
        workchain,
        account,
        arg_max_null(code_hash, state_place(mc_seqno, block_seqno)) as code_hash
    from account_states
    where (workchain, account) in (select workchain, account from used)
    group by workchain, account
),

coded as (
    select
        code_hash,
        count(*) as accounts,
        sum(transactions)::bigint as transactions,
        sum(gas_used)::bigint as gas_used,
        ton_scaled(sum(fees), 9) as fees
    from used
    join newest using (workchain, account)
    where code_hash is not null
    group by code_hash
)

select
    code_hash,
    interfaces,
    accounts,
    transactions,
    gas_used,
    fees
from coded
left join known_codes('interfaces') as codes using (code_hash)
order by
    gas_used desc nulls last,
    code_hash
limit $limit
