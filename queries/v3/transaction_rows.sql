-- Transactions by hash.
--
-- $hashes   blob[]  hashes
-- $first_lt bigint  lowest logical time among them
-- $last_lt  bigint  highest logical time among them
--
-- returns: every column of transactions but time and boc, and trace_id
with trace_ids as (
    select
        hash as tx_hash,
        trace_id
    from transaction_traces
    where
        lt between $first_lt and $last_lt
        and in_list(hash, $hashes::blob[])
)

select
    workchain,
    account,
    lt,
    hash,
    shard,
    block_seqno,
    mc_seqno,
    now,
    prev_trans_hash,
    prev_trans_lt,
    orig_status,
    end_status,
    outmsg_cnt,
    in_msg_hash,
    total_fees,
    total_fees_extra_currencies,
    account_state_hash_before,
    account_state_hash_after,
    descr,
    aborted,
    destroyed,
    credit_first,
    is_tock,
    installed,
    storage_fees_collected,
    storage_fees_due,
    storage_status_change,
    credit_due_fees_collected,
    credit,
    credit_extra_currencies,
    compute_skipped,
    compute_skip_reason,
    compute_success,
    compute_msg_state_used,
    compute_account_activated,
    compute_gas_fees,
    compute_gas_used,
    compute_gas_limit,
    compute_gas_credit,
    compute_mode,
    compute_exit_code,
    compute_exit_arg,
    compute_vm_steps,
    compute_vm_init_state_hash,
    compute_vm_final_state_hash,
    action_success,
    action_valid,
    action_no_funds,
    action_status_change,
    action_total_fwd_fees,
    action_total_action_fees,
    action_result_code,
    action_result_arg,
    action_tot_actions,
    action_spec_actions,
    action_skipped_actions,
    action_msgs_created,
    action_list_hash,
    action_tot_msg_size_cells,
    action_tot_msg_size_bits,
    bounce,
    bounce_msg_size_cells,
    bounce_msg_size_bits,
    bounce_req_fwd_fees,
    bounce_msg_fees,
    bounce_fwd_fees,
    split_info_cur_shard_pfx_len,
    split_info_acc_split_depth,
    split_info_this_addr,
    split_info_sibling_addr,
    trace_id
from transactions
left join trace_ids on hash = tx_hash
where
    lt between $first_lt and $last_lt
    and in_list(hash, $hashes::blob[])
