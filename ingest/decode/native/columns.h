/* The columns of every table, with the names and types of lake/schema; module.c exposes them to
   Python, which compares the two and does not use the extension if they differ. */
#ifndef TONLAKE_COLUMNS_H
#define TONLAKE_COLUMNS_H

#define BLOCKS_COLUMNS(X) \
    X(workchain, int32) X(shard, int64) X(seqno, int64) X(mc_seqno, int64) X(root_hash, hash) \
    X(file_hash, hash) X(global_id, int32) X(version, int64) X(after_merge, bool) \
    X(before_split, bool) X(after_split, bool) X(want_split, bool) X(want_merge, bool) \
    X(key_block, bool) X(vert_seqno_incr, bool) X(flags, int32) X(vert_seqno, int64) \
    X(gen_utime, int64) X(time, time) X(start_lt, int64) X(end_lt, int64) \
    X(validator_list_hash_short, int32) X(gen_catchain_seqno, int64) X(min_ref_mc_seqno, int64) \
    X(prev_key_block_seqno, int64) X(gen_software_version, int64) \
    X(gen_software_capabilities, int64) X(master_ref_seqno, int64) X(prev_shard, int64) \
    X(prev_seqno, int64) X(prev_root_hash, hash) X(prev_file_hash, hash) X(prev2_shard, int64) \
    X(prev2_seqno, int64) X(prev2_root_hash, hash) X(prev2_file_hash, hash) \
    X(state_root_hash, hash) X(rand_seed, hash) X(created_by, hash) X(tx_count, int64) \
    X(boc_bytes, int64)

#define SHARD_BLOCKS_COLUMNS(X) \
    X(mc_seqno, int64) X(workchain, int32) X(shard, int64) X(seqno, int64) X(root_hash, hash) \
    X(file_hash, hash) X(start_lt, int64) X(end_lt, int64) X(gen_utime, int64)

#define TRANSACTIONS_COLUMNS(X) \
    X(workchain, int32) X(account, hash) X(lt, int64) X(hash, hash) X(shard, int64) \
    X(block_seqno, int64) X(mc_seqno, int64) X(now, int64) X(time, time) \
    X(prev_trans_hash, hash) X(prev_trans_lt, int64) X(orig_status, text) X(end_status, text) \
    X(outmsg_cnt, int32) X(in_msg_hash, hash) X(total_fees, int64) \
    X(total_fees_extra_currencies, json) X(account_state_hash_before, hash) \
    X(account_state_hash_after, hash) X(descr, text) X(aborted, bool) X(destroyed, bool) \
    X(credit_first, bool) X(is_tock, bool) X(installed, bool) X(storage_fees_collected, int64) \
    X(storage_fees_due, int64) X(storage_status_change, text) \
    X(credit_due_fees_collected, int64) X(credit, int64) X(credit_extra_currencies, json) \
    X(compute_skipped, bool) X(compute_skip_reason, text) X(compute_success, bool) \
    X(compute_msg_state_used, bool) X(compute_account_activated, bool) X(compute_gas_fees, int64) \
    X(compute_gas_used, int64) X(compute_gas_limit, int64) X(compute_gas_credit, int64) \
    X(compute_mode, int8) X(compute_exit_code, int32) X(compute_exit_arg, int32) \
    X(compute_vm_steps, int64) X(compute_vm_init_state_hash, hash) \
    X(compute_vm_final_state_hash, hash) X(action_success, bool) X(action_valid, bool) \
    X(action_no_funds, bool) X(action_status_change, text) X(action_total_fwd_fees, int64) \
    X(action_total_action_fees, int64) X(action_result_code, int32) X(action_result_arg, int32) \
    X(action_tot_actions, int32) X(action_spec_actions, int32) X(action_skipped_actions, int32) \
    X(action_msgs_created, int32) X(action_list_hash, hash) X(action_tot_msg_size_cells, int64) \
    X(action_tot_msg_size_bits, int64) X(bounce, text) X(bounce_msg_size_cells, int64) \
    X(bounce_msg_size_bits, int64) X(bounce_req_fwd_fees, int64) X(bounce_msg_fees, int64) \
    X(bounce_fwd_fees, int64) X(split_info_cur_shard_pfx_len, int32) \
    X(split_info_acc_split_depth, int32) X(split_info_this_addr, hash) \
    X(split_info_sibling_addr, hash) X(boc, bytes)

#define MESSAGES_COLUMNS(X) \
    X(tx_workchain, int32) X(tx_account, hash) X(tx_lt, int64) X(tx_hash, hash) \
    X(mc_seqno, int64) X(now, int64) X(direction, text) X(msg_index, int32) X(msg_hash, hash) \
    X(hash_norm, hash) X(kind, text) X(source_workchain, int32) X(source, hash) \
    X(source_kind, text) X(destination_workchain, int32) X(destination, hash) \
    X(destination_kind, text) X(value, int64) X(value_extra_currencies, json) X(fwd_fee, int64) \
    X(ihr_fee, int64) X(extra_flags, amount) X(created_lt, int64) X(created_at, int64) \
    X(ihr_disabled, bool) X(bounce, bool) X(bounced, bool) X(import_fee, int64) \
    X(opcode, int32) X(body_hash, hash) X(body, bytes) X(init_state_hash, hash) \
    X(init_state, bytes)

#define ACCOUNT_STATES_COLUMNS(X) \
    X(workchain, int32) X(account, hash) X(mc_seqno, int64) X(shard, int64) \
    X(block_seqno, int64) X(utime, int64) X(hash, hash) X(account_status, text) \
    X(balance, int64) X(extra_currencies, json) X(last_trans_lt, int64) \
    X(last_trans_hash, hash) X(frozen_hash, hash) X(code_hash, hash) X(data_hash, hash) \
    X(library_hash, hash) X(fixed_prefix_length, int8) X(special_tick, bool) \
    X(special_tock, bool) X(storage_cells, int64) X(storage_bits, int64) \
    X(storage_last_paid, int64) X(storage_due_payment, int64) X(storage_last_trans_lt, int64) \
    X(extra_currencies_hash, hash)

#define STATE_CELLS_COLUMNS(X) \
    X(hash, hash) X(mc_seqno, int64) X(cell, bytes) X(refs, hashes)

#define CONFIG_PARAMS_COLUMNS(X) \
    X(mc_seqno, int64) X(utime, int64) X(param, int32) X(hash, hash) X(boc, bytes)

#define LIBRARIES_COLUMNS(X) \
    X(mc_seqno, int64) X(hash, hash) X(present, bool) X(publishers, hashes)

#define QUEUE_SIZES_COLUMNS(X) \
    X(workchain, int32) X(shard, int64) X(seqno, int64) X(mc_seqno, int64) \
    X(out_queue_size, int64)

/* Every table with its sort key: fields that compare bytewise if written big-endian. */
#define ALL_TABLES(X) \
    X(blocks, BLOCKS) X(shard_blocks, SHARD_BLOCKS) X(transactions, TRANSACTIONS) \
    X(messages, MESSAGES) X(account_states, ACCOUNT_STATES) X(state_cells, STATE_CELLS) \
    X(config_params, CONFIG_PARAMS) X(libraries, LIBRARIES) \
    X(queue_sizes, QUEUE_SIZES)

#endif
