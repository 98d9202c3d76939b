create or replace view v_transactions as
select
    transactions.time,
    transactions.hash as tx_hash,
    transactions.lt,
    trace_id,
    ton_address(transactions.workchain, transactions.account) as address,
    transactions.workchain,
    transactions.account,
    labels.label,
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
    ton_coins(known.balance)::decimal(38, 9) as balance_after,
    known.balance as balance_after_units,
    known.code_hash as code_hash_after,
    transactions.mc_seqno,
    transactions.day
from transactions
-- Grouped by keys of both sides, whose filters prune it too: DuckDB leaves out one such join, if no
-- column of it is asked for.
left join (
    select
        hash,
        lt,
        account,
        mc_seqno,
        any_value(trace_id) as trace_id,
        any_value(balance) as balance,
        any_value(code_hash) as code_hash
    from (
        select
            hash,
            lt,
            account,
            mc_seqno,
            trace_id
        from transaction_traces
        union all by name
        -- The states of a block are those after the last transactions of its accounts.
        select
            last_trans_hash as hash,
            last_trans_lt as lt,
            account,
            mc_seqno,
            balance,
            code_hash
        from account_states
    )
    group by hash, lt, account, mc_seqno
) as known
    on transactions.hash = known.hash
    and transactions.lt = known.lt
    and transactions.account = known.account
    and transactions.mc_seqno = known.mc_seqno
left join labels
    on transactions.account = labels.account and transactions.workchain = labels.workchain;
