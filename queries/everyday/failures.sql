-- Failed transactions by phase and exit code, in words.
--
-- $account address = null  only of this account; null: any
-- $first   date    = null  first UTC day; null: of the lake
-- $last    date    = null  last UTC day; null: of the lake
-- $limit   integer = 50    maximum number of rows
--
-- chart: bar x=exit_words y=transactions
-- returns: failed_phase, exit_code, exit_words, transactions, accounts, fees; most frequent first;
-- fees in TON
with failed as (
    select
        failed_phase,
        exit_code,
        exit_words,
        workchain,
        account,
        count(*) as transactions,
        sum(fee) as fees
    from v_transactions
    where
        not success
        and ($account is null or (
            account = ton_account($account) and workchain = ton_workchain($account)
        ))
        and in_days(time, $first, $last)
    group by all
)

select
    failed_phase,
    exit_code,
    exit_words,
    sum(transactions)::bigint as transactions,
    count(*) as accounts,
    sum(fees) as fees
from failed
group by failed_phase, exit_code, exit_words
order by
    transactions desc,
    failed_phase,
    exit_code,
    exit_words
limit $limit
