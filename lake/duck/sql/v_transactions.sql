create or replace view v_transactions as
select
    transactions.time,
    hash as tx_hash,
    lt,
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
    mc_seqno,
    day
from transactions
left join labels
    on transactions.account = labels.account and transactions.workchain = labels.workchain;
