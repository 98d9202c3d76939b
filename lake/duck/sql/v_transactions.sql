create or replace view v_transactions as
-- Computed below the joins: DuckDB joins no traces that are asked for below a computed column, but reads
-- all transactions of all traces before.
with described as not materialized (
    select
        time,
        hash as tx_hash,
        lt,
        ton_address(workchain, account) as address,
        workchain,
        account,
        descr as kind,
        not coalesce(aborted, false) as success,
        case
            when aborted is not true then null
            when action_success is false then 'action'
            when compute_success is not true then 'compute'
        end as failed_phase,
        case
            when aborted and action_success is false then action_result_code
            else compute_exit_code
        end as exit_code,
        case
            when aborted and action_success is false then ton_action_words(action_result_code)
            when compute_skipped then 'not run: ' || compute_skip_reason
            else ton_exit_words(compute_exit_code)
        end as exit_words,
        compute_gas_used as gas_used,
        ton_coins(total_fees)::decimal(38, 9) as fee,
        total_fees as fee_units,
        orig_status as status_before,
        end_status as status_after,
        outmsg_cnt as out_messages,
        in_msg_hash,
        prev_trans_hash as prev_tx_hash,
        mc_seqno,
        day
    from transactions
    -- As in each_move, unless traces are asked for.
    semi join (select unnest([true, false]) as ended) as either -- part: by_trace
        on coalesce(aborted, false) = ended
)
select
    transactions.time,
    tx_hash,
    transactions.lt,
    trace_id, -- part: trace
    address,
    transactions.workchain,
    transactions.account,
    labels.label, -- part: code
    kind,
    success,
    failed_phase,
    exit_code,
    exit_words,
    gas_used,
    fee,
    fee_units,
    status_before,
    status_after,
    out_messages,
    in_msg_hash,
    prev_tx_hash,
    ton_coins(balance)::decimal(38, 9) as balance_after, -- part: after
    balance as balance_after_units, -- part: after
    code_hash as code_hash_after, -- part: after
    transactions.mc_seqno,
    transactions.day
from described as transactions
left join transaction_traces as traced -- part: traced
    on transactions.account = traced.account
    and transactions.lt = traced.lt
    and transactions.workchain = traced.workchain
    and transactions.mc_seqno = traced.mc_seqno -- many
    and transactions.day = traced.day
-- The states of a block are those after the last transactions of its accounts; a lake that begins late
-- may have one of them twice.
left join ( -- part: states
    select
        account,
        last_trans_lt,
        workchain,
        mc_seqno,
        day,
        any_value(balance) as balance,
        any_value(code_hash) as code_hash
    from account_states
    group by all
) as states -- part: states
    on transactions.account = states.account
    and transactions.lt = states.last_trans_lt
    and transactions.workchain = states.workchain
    and transactions.mc_seqno = states.mc_seqno -- many
    and transactions.day = states.day
-- Both, where no part is known to be unread. Grouped by keys of both sides, whose filters prune it too:
-- DuckDB leaves out one such join, if no column of it is asked for. Tables without the time are joined to
-- it here for a filter on time.
left join ( -- part: grouped
    select
        held.hash,
        held.lt,
        held.account,
        held.mc_seqno,
        held.day,
        held.time,
        any_value(traced.trace_id) as trace_id,
        any_value(states.balance) as balance,
        any_value(states.code_hash) as code_hash
    from each_move('transactions') as held
    left join transaction_traces as traced
        on held.account = traced.account
        and held.lt = traced.lt
        and held.workchain = traced.workchain
        and held.mc_seqno = traced.mc_seqno -- many
        and held.day = traced.day
    left join account_states as states
        on held.account = states.account
        and held.lt = states.last_trans_lt
        and held.workchain = states.workchain
        and held.mc_seqno = states.mc_seqno -- many
        and held.day = states.day
    group by all
) as known -- part: grouped
    on transactions.tx_hash = known.hash
    and transactions.lt = known.lt
    and transactions.account = known.account
    and transactions.mc_seqno = known.mc_seqno
    and transactions.day = known.day
    and transactions.time = known.time
left join label_of('labels') as labels -- part: code
    on transactions.account = labels.account and transactions.workchain = labels.workchain
;
