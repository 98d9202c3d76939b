#include "encode.h"

/* Fail if a column is NULL. */
static void need(Bits *bits, bool is_there)
{
    bits->failed |= !is_there;
}

static void put_status(Bits *bits, bool is_there, uint8_t word)
{
    unsigned number =
        word == WORD_uninit ? 0 : word == WORD_frozen ? 1 : word == WORD_active ? 2 : 3;
    need(bits, is_there && (number < 3 || word == WORD_nonexist));
    bits_uint(bits, number, 2);
}

static void put_change(Bits *bits, bool is_there, uint8_t word)
{
    if (word == WORD_unchanged)
        bits_uint(bits, 0, 1);
    else
        bits_uint(bits, word == WORD_frozen ? 2 : 3, 2);
    need(bits, is_there &&
                   (word == WORD_unchanged || word == WORD_frozen || word == WORD_deleted));
}

static void put_var_uint(Bits *bits, bool is_there, int64_t value, unsigned length_bits)
{
    need(bits, is_there);
    bits_amount(bits, (Amount){.low = (uint64_t)value}, length_bits);
}

static void put_grams(Bits *bits, bool is_there, int64_t value)
{
    put_var_uint(bits, is_there, value, 4);
}

static void put_hash(Bits *bits, bool is_there, const Hash *hash)
{
    need(bits, is_there);
    bits_hash(bits, hash);
}

/* Write an unsigned integer. */
static void put_uint(Bits *bits, bool is_there, int64_t value, unsigned size)
{
    need(bits, is_there);
    bits_uint(bits, (uint64_t)value, size);
}

static void put_int32(Bits *bits, bool is_there, int32_t value)
{
    put_uint(bits, is_there, (uint32_t)value, 32);
}

/* A column of a row, and whether it is not NULL. */
#define OF(row, name) (row)->has_##name, (row)->name
#define AT(row, name) (row)->has_##name, &(row)->name

void put_rest(Bits *bits, Slice *slice)
{
    for (unsigned left; (left = slice_bits_left(slice));) {
        unsigned size = left < 64 ? left : 64;
        bits_uint(bits, slice_uint(slice, size), size);
    }
}

void put_root(Bits *bits, const Row_transactions *row)
{
    bits_uint(bits, 7, 4);
    put_hash(bits, AT(row, account));
    put_uint(bits, OF(row, lt), 64);
    put_hash(bits, AT(row, prev_trans_hash));
    put_uint(bits, OF(row, prev_trans_lt), 64);
    put_uint(bits, OF(row, now), 32);
    put_uint(bits, OF(row, outmsg_cnt), OUT_KEY_BITS);
    put_status(bits, OF(row, orig_status));
    put_status(bits, OF(row, end_status));
    put_grams(bits, OF(row, total_fees));
    bits_uint(bits, 0, 1);
    need(bits, !row->has_total_fees_extra_currencies);
}

void put_update(Bits *bits, const Row_transactions *row)
{
    bits_uint(bits, 0x72, 8);
    put_hash(bits, AT(row, account_state_hash_before));
    put_hash(bits, AT(row, account_state_hash_after));
}

static void put_storage(Bits *bits, const Row_transactions *row)
{
    put_grams(bits, OF(row, storage_fees_collected));
    bits_maybe_grams(bits, OF(row, storage_fees_due));
    put_change(bits, OF(row, storage_status_change));
}

/* Write Maybe TrCreditPhase without extra currencies. */
static void put_credit(Bits *bits, const Row_transactions *row)
{
    bits_uint(bits, row->has_credit, 1);
    if (!row->has_credit)
        return;
    bits_maybe_grams(bits, OF(row, credit_due_fees_collected));
    put_grams(bits, OF(row, credit));
    bits_uint(bits, 0, 1);
}

/* Write TrComputePhase without its child cell. */
static void put_compute(Bits *bits, const Row_transactions *row)
{
    uint8_t reason = row->compute_skip_reason;
    if (!row->compute_skipped) {
        bits_uint(bits, 1, 1);
        put_uint(bits, OF(row, compute_success), 1);
        put_uint(bits, OF(row, compute_msg_state_used), 1);
        put_uint(bits, OF(row, compute_account_activated), 1);
        put_grams(bits, OF(row, compute_gas_fees));
        return;
    }
    need(bits, row->has_compute_skip_reason &&
                   (reason == WORD_suspended || reason == WORD_no_state ||
                    reason == WORD_bad_state || reason == WORD_no_gas));
    if (reason == WORD_suspended)
        bits_uint(bits, 6, 4);
    else
        bits_uint(bits, reason == WORD_no_state ? 0 : reason == WORD_bad_state ? 1 : 2, 3);
}

/* Write Maybe TrBouncePhase. */
static void put_bounce(Bits *bits, const Row_transactions *row)
{
    uint8_t kind = row->bounce;
    bits_uint(bits, row->has_bounce, 1);
    if (!row->has_bounce)
        return;
    need(bits, kind == WORD_ok || kind == WORD_nofunds || kind == WORD_negfunds);
    if (kind == WORD_ok)
        bits_uint(bits, 1, 1);
    else
        bits_uint(bits, kind == WORD_nofunds, 2);
    if (kind == WORD_negfunds)
        return;
    put_var_uint(bits, OF(row, bounce_msg_size_cells), 3);
    put_var_uint(bits, OF(row, bounce_msg_size_bits), 3);
    if (kind == WORD_ok) {
        put_grams(bits, OF(row, bounce_msg_fees));
        put_grams(bits, OF(row, bounce_fwd_fees));
    } else {
        put_grams(bits, OF(row, bounce_req_fwd_fees));
    }
}

void put_description(Bits *bits, const Row_transactions *row)
{
    bool is_ord = row->descr == WORD_ord;
    need(bits, row->has_descr && (is_ord || row->descr == WORD_tick_tock) &&
                   !row->has_credit_extra_currencies && row->has_compute_skipped);
    if (is_ord) {
        put_uint(bits, OF(row, credit_first), 5);
        bits_uint(bits, row->has_storage_fees_collected, 1);
    } else {
        put_uint(bits, row->has_is_tock, 2 + row->is_tock, 4);
    }
    if (row->has_storage_fees_collected || !is_ord)
        put_storage(bits, row);
    if (is_ord)
        put_credit(bits, row);
    put_compute(bits, row);
    bits_uint(bits, has_action_cell(row), 1);
    put_uint(bits, OF(row, aborted), 1);
    if (is_ord)
        put_bounce(bits, row);
    put_uint(bits, OF(row, destroyed), 1);
}

void put_run(Bits *bits, const Row_transactions *row)
{
    put_var_uint(bits, OF(row, compute_gas_used), 3);
    put_var_uint(bits, OF(row, compute_gas_limit), 3);
    bits_uint(bits, row->has_compute_gas_credit, 1);
    if (row->has_compute_gas_credit)
        put_var_uint(bits, OF(row, compute_gas_credit), 2);
    put_uint(bits, row->has_compute_mode, (uint8_t)row->compute_mode, 8);
    put_int32(bits, OF(row, compute_exit_code));
    bits_maybe_int32(bits, OF(row, compute_exit_arg));
    put_uint(bits, OF(row, compute_vm_steps), 32);
    put_hash(bits, AT(row, compute_vm_init_state_hash));
    put_hash(bits, AT(row, compute_vm_final_state_hash));
}

void put_action(Bits *bits, const Row_transactions *row)
{
    put_uint(bits, OF(row, action_success), 1);
    put_uint(bits, OF(row, action_valid), 1);
    put_uint(bits, OF(row, action_no_funds), 1);
    put_change(bits, OF(row, action_status_change));
    bits_maybe_grams(bits, OF(row, action_total_fwd_fees));
    bits_maybe_grams(bits, OF(row, action_total_action_fees));
    put_int32(bits, OF(row, action_result_code));
    bits_maybe_int32(bits, OF(row, action_result_arg));
    put_uint(bits, OF(row, action_tot_actions), 16);
    put_uint(bits, OF(row, action_spec_actions), 16);
    put_uint(bits, OF(row, action_skipped_actions), 16);
    put_uint(bits, OF(row, action_msgs_created), 16);
    put_hash(bits, AT(row, action_list_hash));
    put_var_uint(bits, OF(row, action_tot_msg_size_cells), 3);
    put_var_uint(bits, OF(row, action_tot_msg_size_bits), 3);
}

/* Write HmLabel in the form that the node uses: store_label in ingest/decode/cell/dictionary.py. */
static void put_label(Bits *bits, uint32_t label, unsigned length, unsigned left)
{
    unsigned size = 0;
    for (unsigned rest = left; rest; rest >>= 1)
        size++;
    bool same = length > 1 && (!label || label == (1u << length) - 1);
    if (same && size < 2 * length - 1) {
        bits_uint(bits, 6 | (label & 1), 3);
        bits_uint(bits, length, size);
        return;
    }
    if (size < length) {
        bits_uint(bits, 2, 2);
        bits_uint(bits, length, size);
    } else {
        bits_uint(bits, (1u << (length + 1)) - 2, length + 2);
    }
    bits_uint(bits, label, length);
}

unsigned put_out_node(Bits *bits, uint32_t first, uint32_t last, unsigned left)
{
    unsigned rest = 0;
    while ((first ^ last) >> rest)
        rest++;
    unsigned length = left - rest;
    put_label(bits, first >> rest & ((1u << length) - 1), length, left);
    return rest;
}

void put_holder(Bits *bits, bool has_in, bool has_out)
{
    bits_uint(bits, has_in, 1);
    bits_uint(bits, has_out, 1);
}

/* Write addr_std$10 without anycast, addr_none$00, or the bits of `external`. */
static void put_address(Bits *bits, uint8_t kind, bool is_std, int32_t workchain,
                        const Hash *account, const Slice *external)
{
    if (kind == WORD_std) {
        bits_uint(bits, 4, 3);
        bits_uint(bits, (uint8_t)workchain, 8);
        put_hash(bits, is_std, account);
    } else if (kind == WORD_none) {
        bits_uint(bits, 0, 2);
    } else if (kind == WORD_extern && external) {
        Slice slice = *external;
        put_rest(bits, &slice);
    } else {
        need(bits, false);
    }
}

static void put_addresses(Bits *bits, const Row_messages *row, const Slice *external)
{
    need(bits, row->has_source_kind && row->has_destination_kind);
    put_address(bits, row->source_kind, row->has_source && row->has_source_workchain,
                row->source_workchain, &row->source, row->kind == WORD_ext_in ? external : NULL);
    put_address(bits, row->destination_kind,
                row->has_destination && row->has_destination_workchain,
                row->destination_workchain, &row->destination,
                row->kind == WORD_ext_out ? external : NULL);
}

/* Write int_msg_info$0 up to created_lt. */
static void put_int_info(Bits *bits, const Row_messages *row)
{
    put_uint(bits, OF(row, ihr_disabled), 2);
    put_uint(bits, OF(row, bounce), 1);
    put_uint(bits, OF(row, bounced), 1);
    put_addresses(bits, row, NULL);
    put_grams(bits, OF(row, value));
    bits_uint(bits, 0, 1);
    if (row->has_extra_flags)
        bits_amount(bits, row->extra_flags, 4);
    else
        put_grams(bits, OF(row, ihr_fee));
    put_grams(bits, OF(row, fwd_fee));
}

void put_info(Bits *bits, const Row_messages *row, const Slice *external)
{
    bool is_in = row->kind == WORD_ext_in, is_out = row->kind == WORD_ext_out;
    need(bits, row->has_kind && (is_in || is_out || row->kind == WORD_int) &&
                   !row->has_value_extra_currencies);
    if (is_in || is_out) {
        bits_uint(bits, is_in ? 2 : 3, 2);
        put_addresses(bits, row, external);
    } else {
        put_int_info(bits, row);
    }
    if (is_in) {
        put_grams(bits, OF(row, import_fee));
    } else {
        put_uint(bits, OF(row, created_lt), 64);
        put_uint(bits, OF(row, created_at), 32);
    }
}
