/* Reads the description of a transaction and its phases. TL-B: the seven constructors of
   TransactionDescr, tr_phase_storage, _credit, _compute_*, _action, _bounce_*, split_merge_info.
   Like ingest/decode/block/transaction.py. */
#include "decoder.h"

/* VarUInteger 7 and 3: length fields of 3 and 2 bits; both fit int64. */
static int64_t read_var_uint7(Slice *slice)
{
    return (int64_t)slice_amount(slice, 3).low;
}

static int64_t read_var_uint3(Slice *slice)
{
    return (int64_t)slice_amount(slice, 2).low;
}

/* AccStatusChange: 0 unchanged, 10 frozen, 11 deleted. */
static Word read_status_change(Slice *slice)
{
    if (!slice_bit(slice))
        return WORD_unchanged;
    return slice_bit(slice) ? WORD_deleted : WORD_frozen;
}

/* TrStoragePhase. */
static void read_storage(Row_transactions *row, Slice *slice)
{
    SET(row, storage_fees_collected, slice_grams(slice));
    if (slice_bit(slice))
        SET(row, storage_fees_due, slice_grams(slice));
    SET(row, storage_status_change, (uint8_t)read_status_change(slice));
}

static void read_maybe_storage(Row_transactions *row, Slice *slice)
{
    if (slice_bit(slice))
        read_storage(row, slice);
}

/* Maybe TrCreditPhase. */
static Status read_maybe_credit(Block *block, Row_transactions *row, Slice *slice)
{
    if (!slice_bit(slice))
        return DONE;
    if (slice_bit(slice))
        SET(row, credit_due_fees_collected, slice_grams(slice));
    SET(row, credit, slice_grams(slice));
    uint32_t currencies;
    if (!slice_maybe_ref(slice, &currencies))
        return DONE;
    Span text = {0};
    Status status = write_currencies(block, TABLE_transactions, currencies, &text);
    SET(row, credit_extra_currencies, text);
    return status;
}

/* The child cell of tr_phase_compute_vm. */
static bool read_run(Row_transactions *row, Slice *run)
{
    SET(row, compute_gas_used, read_var_uint7(run));
    SET(row, compute_gas_limit, read_var_uint7(run));
    if (slice_bit(run))
        SET(row, compute_gas_credit, read_var_uint3(run));
    SET(row, compute_mode, (int8_t)slice_int(run, 8));
    SET(row, compute_exit_code, (int32_t)slice_int(run, 32));
    if (slice_bit(run))
        SET(row, compute_exit_arg, (int32_t)slice_int(run, 32));
    SET(row, compute_vm_steps, (int64_t)slice_uint(run, 32));
    SET(row, compute_vm_init_state_hash, slice_hash(run));
    SET(row, compute_vm_final_state_hash, slice_hash(run));
    return !run->failed;
}

/* tr_phase_compute_skipped$0. */
static bool read_skipped(Row_transactions *row, Slice *slice)
{
    static const uint8_t reasons[] = {WORD_no_state, WORD_bad_state, WORD_no_gas, WORD_suspended};
    uint64_t reason = slice_uint(slice, 2);
    SET(row, compute_skipped, true);
    SET(row, compute_skip_reason, reasons[reason]);
    return reason != 3 || !slice_bit(slice); /* cskip_suspended$110 */
}

static bool read_compute(Block *block, Row_transactions *row, Slice *slice)
{
    if (!slice_bit(slice))
        return read_skipped(row, slice);
    SET(row, compute_skipped, false);
    SET(row, compute_success, slice_bit(slice));
    SET(row, compute_msg_state_used, slice_bit(slice));
    SET(row, compute_account_activated, slice_bit(slice));
    SET(row, compute_gas_fees, slice_grams(slice));
    Slice run = slice_open(&block->tree, slice_ref(slice));
    return read_run(row, &run);
}

/* TrActionPhase. */
static bool read_action(Row_transactions *row, Slice *slice)
{
    SET(row, action_success, slice_bit(slice));
    SET(row, action_valid, slice_bit(slice));
    SET(row, action_no_funds, slice_bit(slice));
    SET(row, action_status_change, (uint8_t)read_status_change(slice));
    if (slice_bit(slice))
        SET(row, action_total_fwd_fees, slice_grams(slice));
    if (slice_bit(slice))
        SET(row, action_total_action_fees, slice_grams(slice));
    SET(row, action_result_code, (int32_t)slice_int(slice, 32));
    if (slice_bit(slice))
        SET(row, action_result_arg, (int32_t)slice_int(slice, 32));
    SET(row, action_tot_actions, (int32_t)slice_uint(slice, 16));
    SET(row, action_spec_actions, (int32_t)slice_uint(slice, 16));
    SET(row, action_skipped_actions, (int32_t)slice_uint(slice, 16));
    SET(row, action_msgs_created, (int32_t)slice_uint(slice, 16));
    SET(row, action_list_hash, slice_hash(slice));
    SET(row, action_tot_msg_size_cells, read_var_uint7(slice));
    SET(row, action_tot_msg_size_bits, read_var_uint7(slice));
    return !slice->failed && !slice->wide;
}

/* Maybe ^TrActionPhase. */
static bool read_maybe_action(Block *block, Row_transactions *row, Slice *slice)
{
    uint32_t cell;
    if (!slice_maybe_ref(slice, &cell))
        return true;
    Slice action = slice_open(&block->tree, cell);
    return read_action(row, &action);
}

/* Maybe TrBouncePhase: 00 negfunds, 01 nofunds, 1 ok. */
static void read_maybe_bounce(Row_transactions *row, Slice *slice)
{
    if (!slice_bit(slice))
        return;
    bool is_ok = slice_bit(slice);
    if (!is_ok && !slice_bit(slice)) {
        SET(row, bounce, WORD_negfunds);
        return;
    }
    SET(row, bounce, is_ok ? WORD_ok : WORD_nofunds);
    SET(row, bounce_msg_size_cells, read_var_uint7(slice));
    SET(row, bounce_msg_size_bits, read_var_uint7(slice));
    if (is_ok) {
        SET(row, bounce_msg_fees, slice_grams(slice));
        SET(row, bounce_fwd_fees, slice_grams(slice));
    } else {
        SET(row, bounce_req_fwd_fees, slice_grams(slice));
    }
}

/* SplitMergeInfo. */
static void read_split(Row_transactions *row, Slice *slice)
{
    SET(row, split_info_cur_shard_pfx_len, (int32_t)slice_uint(slice, 6));
    SET(row, split_info_acc_split_depth, (int32_t)slice_uint(slice, 6));
    SET(row, split_info_this_addr, slice_hash(slice));
    SET(row, split_info_sibling_addr, slice_hash(slice));
}

/* compute_ph, action and aborted, which are consecutive in most constructors. */
static bool read_phases(Block *block, Row_transactions *row, Slice *slice)
{
    if (!read_compute(block, row, slice) || !read_maybe_action(block, row, slice))
        return false;
    SET(row, aborted, slice_bit(slice));
    return true;
}

static bool read_run_to_end(Block *block, Row_transactions *row, Slice *slice)
{
    if (!read_phases(block, row, slice))
        return false;
    SET(row, destroyed, slice_bit(slice));
    return true;
}

/* trans_ord$0000. */
static Status read_ord(Block *block, Row_transactions *row, Slice *slice)
{
    SET(row, descr, WORD_ord);
    SET(row, credit_first, slice_bit(slice));
    read_maybe_storage(row, slice);
    Status status = read_maybe_credit(block, row, slice);
    if (status != DONE)
        return status;
    if (!read_phases(block, row, slice))
        return NOT_MINE;
    read_maybe_bounce(row, slice);
    SET(row, destroyed, slice_bit(slice));
    return DONE;
}

/* trans_merge_install$0111; its first reference is the prepare transaction. */
static Status read_merge_install(Block *block, Row_transactions *row, Slice *slice)
{
    SET(row, descr, WORD_merge_install);
    read_split(row, slice);
    slice_ref(slice);
    read_maybe_storage(row, slice);
    Status status = read_maybe_credit(block, row, slice);
    if (status != DONE)
        return status;
    return read_run_to_end(block, row, slice) ? DONE : NOT_MINE;
}

/* trans_storage$0001, trans_tick_tock$001, trans_split_prepare$0100, trans_split_install$0101,
   trans_merge_prepare$0110. */
static bool read_other(Block *block, Row_transactions *row, Slice *slice, unsigned tag)
{
    switch (tag) {
    case 1:
        SET(row, descr, WORD_storage);
        read_storage(row, slice);
        return true;
    case 2:
    case 3:
        SET(row, descr, WORD_tick_tock);
        SET(row, is_tock, tag == 3);
        read_storage(row, slice);
        return read_run_to_end(block, row, slice);
    case 4:
        SET(row, descr, WORD_split_prepare);
        read_split(row, slice);
        read_maybe_storage(row, slice);
        return read_run_to_end(block, row, slice);
    case 5:
        SET(row, descr, WORD_split_install);
        read_split(row, slice);
        SET(row, installed, slice_bit(slice));
        slice_ref(slice); /* the prepare transaction */
        return true;
    case 6:
        SET(row, descr, WORD_merge_prepare);
        read_split(row, slice);
        read_storage(row, slice);
        SET(row, aborted, slice_bit(slice));
        return true;
    default:
        return false;
    }
}

Status read_description(Block *block, Row_transactions *row, uint32_t cell)
{
    Slice slice = slice_open(&block->tree, cell);
    unsigned tag = (unsigned)slice_uint(&slice, 4);
    Status status;
    if (tag == 0)
        status = read_ord(block, row, &slice);
    else if (tag == 7)
        status = read_merge_install(block, row, &slice);
    else
        status = read_other(block, row, &slice, tag) ? DONE : NOT_MINE;
    return status == DONE && (slice.failed || slice.wide) ? NOT_MINE : status;
}
