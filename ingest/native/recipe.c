/* Whether the cells of a transaction follow from its rows: they are encoded from the rows, and
   compared with those that are there. As in ingest/block/recipe.py and encode.py. */
#include "bits.h"
#include "decoder.h"

#define OUT_KEY_BITS 15

static uint64_t number_status(uint8_t word)
{
    return word == WORD_uninit ? 0 : word == WORD_frozen ? 1 : word == WORD_active ? 2 : 3;
}

static void put_change(Bits *bits, uint8_t word)
{
    if (word == WORD_unchanged)
        bits_uint(bits, 0, 1);
    else
        bits_uint(bits, word == WORD_frozen ? 2 : 3, 2);
}

static void put_var_uint(Bits *bits, int64_t value, unsigned length_bits)
{
    bits_amount(bits, (Amount){.low = (uint64_t)value}, length_bits);
}

/* transaction$0111 over three cells: fees have no extra currencies. */
static bool is_usual_root(const Row_transactions *row, const Cell *cell)
{
    Bits bits;
    bits_open(&bits);
    bits_uint(&bits, 7, 4);
    bits_hash(&bits, &row->account);
    bits_uint(&bits, (uint64_t)row->lt, 64);
    bits_hash(&bits, &row->prev_trans_hash);
    bits_uint(&bits, (uint64_t)row->prev_trans_lt, 64);
    bits_uint(&bits, (uint64_t)row->now, 32);
    bits_uint(&bits, (uint64_t)row->outmsg_cnt, 15);
    bits_uint(&bits, number_status(row->orig_status), 2);
    bits_uint(&bits, number_status(row->end_status), 2);
    bits_grams(&bits, row->total_fees);
    bits_uint(&bits, 0, 1);
    return !row->has_total_fees_extra_currencies && bits_are_all(&bits, cell, 3);
}

static void put_storage(Bits *bits, const Row_transactions *row)
{
    bits_grams(bits, row->storage_fees_collected);
    bits_maybe_grams(bits, row->has_storage_fees_due, row->storage_fees_due);
    put_change(bits, row->storage_status_change);
}

/* Maybe TrCreditPhase without extra currencies. */
static void put_credit(Bits *bits, const Row_transactions *row)
{
    bits_uint(bits, row->has_credit, 1);
    if (!row->has_credit)
        return;
    bits_maybe_grams(bits, row->has_credit_due_fees_collected, row->credit_due_fees_collected);
    bits_grams(bits, row->credit);
    bits_uint(bits, 0, 1);
}

/* TrComputePhase without the cell below it. */
static void put_compute(Bits *bits, const Row_transactions *row)
{
    uint8_t reason = row->compute_skip_reason;
    if (!row->compute_skipped) {
        bits_uint(bits, 1, 1);
        bits_uint(bits, row->compute_success, 1);
        bits_uint(bits, row->compute_msg_state_used, 1);
        bits_uint(bits, row->compute_account_activated, 1);
        bits_grams(bits, row->compute_gas_fees);
    } else if (reason == WORD_suspended) {
        bits_uint(bits, 6, 4);
    } else {
        bits_uint(bits, reason == WORD_no_state ? 0 : reason == WORD_bad_state ? 1 : 2, 3);
    }
}

/* Maybe TrBouncePhase. */
static void put_bounce(Bits *bits, const Row_transactions *row)
{
    uint8_t kind = row->bounce;
    bits_uint(bits, row->has_bounce, 1);
    if (!row->has_bounce)
        return;
    if (kind == WORD_ok)
        bits_uint(bits, 1, 1);
    else
        bits_uint(bits, kind == WORD_nofunds, 2);
    if (kind == WORD_negfunds)
        return;
    put_var_uint(bits, row->bounce_msg_size_cells, 3);
    put_var_uint(bits, row->bounce_msg_size_bits, 3);
    bits_grams(bits, kind == WORD_ok ? row->bounce_msg_fees : row->bounce_req_fwd_fees);
    if (kind == WORD_ok)
        bits_grams(bits, row->bounce_fwd_fees);
}

/* The cell of tr_phase_compute_vm. */
static bool is_usual_run(const Row_transactions *row, const Cell *cell)
{
    Bits bits;
    bits_open(&bits);
    put_var_uint(&bits, row->compute_gas_used, 3);
    put_var_uint(&bits, row->compute_gas_limit, 3);
    bits_uint(&bits, row->has_compute_gas_credit, 1);
    if (row->has_compute_gas_credit)
        put_var_uint(&bits, row->compute_gas_credit, 2);
    bits_uint(&bits, (uint8_t)row->compute_mode, 8);
    bits_uint(&bits, (uint32_t)row->compute_exit_code, 32);
    bits_maybe_int32(&bits, row->has_compute_exit_arg, row->compute_exit_arg);
    bits_uint(&bits, (uint64_t)row->compute_vm_steps, 32);
    bits_hash(&bits, &row->compute_vm_init_state_hash);
    bits_hash(&bits, &row->compute_vm_final_state_hash);
    return bits_are_all(&bits, cell, 0);
}

/* The cell of TrActionPhase. */
static bool is_usual_action(const Row_transactions *row, const Cell *cell)
{
    Bits bits;
    bits_open(&bits);
    bits_uint(&bits, row->action_success, 1);
    bits_uint(&bits, row->action_valid, 1);
    bits_uint(&bits, row->action_no_funds, 1);
    put_change(&bits, row->action_status_change);
    bits_maybe_grams(&bits, row->has_action_total_fwd_fees, row->action_total_fwd_fees);
    bits_maybe_grams(&bits, row->has_action_total_action_fees, row->action_total_action_fees);
    bits_uint(&bits, (uint32_t)row->action_result_code, 32);
    bits_maybe_int32(&bits, row->has_action_result_arg, row->action_result_arg);
    bits_uint(&bits, (uint32_t)row->action_tot_actions, 16);
    bits_uint(&bits, (uint32_t)row->action_spec_actions, 16);
    bits_uint(&bits, (uint32_t)row->action_skipped_actions, 16);
    bits_uint(&bits, (uint32_t)row->action_msgs_created, 16);
    bits_hash(&bits, &row->action_list_hash);
    put_var_uint(&bits, row->action_tot_msg_size_cells, 3);
    put_var_uint(&bits, row->action_tot_msg_size_bits, 3);
    return bits_are_all(&bits, cell, 0);
}

/* TransactionDescr of kind ord or tick_tock, and what it refers to. */
static bool is_usual_description(const Tree *tree, const Row_transactions *row, const Cell *cell)
{
    Bits bits;
    bool is_ord = row->descr == WORD_ord, has_run = !row->compute_skipped;
    bool has_action = row->has_action_success;
    if ((!is_ord && row->descr != WORD_tick_tock) || row->has_credit_extra_currencies)
        return false;
    bits_open(&bits);
    if (is_ord) {
        bits_uint(&bits, row->credit_first, 5);
        bits_uint(&bits, row->has_storage_fees_collected, 1);
    } else {
        bits_uint(&bits, 2u + row->is_tock, 4);
    }
    if (row->has_storage_fees_collected)
        put_storage(&bits, row);
    if (is_ord)
        put_credit(&bits, row);
    put_compute(&bits, row);
    bits_uint(&bits, has_action, 1);
    bits_uint(&bits, row->aborted, 1);
    if (is_ord)
        put_bounce(&bits, row);
    bits_uint(&bits, row->destroyed, 1);
    if (!bits_are_all(&bits, cell, (unsigned)has_run + has_action))
        return false;
    if (has_run && !is_usual_run(row, &tree->cells[cell->refs[0]]))
        return false;
    return !has_action || is_usual_action(row, &tree->cells[cell->refs[has_run]]);
}

/* HmLabel in the one form that the node gives it: see ingest/cell/dictionary_writer.py. */
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

/* A node of HashmapE 15 ^Message over the keys `first` to `last`, which differ in the last `left`
   bits alone. */
static bool is_usual_node(const Tree *tree, uint32_t node, uint32_t first, uint32_t last,
                          unsigned left)
{
    const Cell *cell = &tree->cells[node];
    Bits bits;
    unsigned rest = 0;
    while ((first ^ last) >> rest)
        rest++;
    unsigned length = left - rest;
    bits_open(&bits);
    put_label(&bits, first >> rest & ((1u << length) - 1), length, left);
    if (!bits_are_all(&bits, cell, rest ? 2 : 1))
        return false;
    if (!rest)
        return true;
    uint32_t fork = last >> (rest - 1) << (rest - 1);
    return is_usual_node(tree, cell->refs[0], first, fork - 1, rest - 1) &&
           is_usual_node(tree, cell->refs[1], fork, last, rest - 1);
}

/* ^[in_msg:(Maybe ^Message) out_msgs:(HashmapE 15 ^Message)]. */
static bool is_usual_holder(const Tree *tree, const Row_transactions *row, const Cell *cell)
{
    Bits bits;
    bool has_in = row->has_in_msg_hash, has_out = row->outmsg_cnt > 0;
    bits_open(&bits);
    bits_uint(&bits, has_in, 1);
    bits_uint(&bits, has_out, 1);
    if (!bits_are_all(&bits, cell, (unsigned)has_in + has_out))
        return false;
    return !has_out || is_usual_node(tree, cell->refs[has_in], 0, (uint32_t)row->outmsg_cnt - 1,
                                     OUT_KEY_BITS);
}

/* addr_std$10 without anycast, addr_none$00, and of `external` its own bits. */
static bool put_address(Bits *bits, bool is_std, uint8_t kind, int32_t workchain,
                        const Hash *account, Slice *external)
{
    if (is_std) {
        bits_uint(bits, 4, 3);
        bits_uint(bits, (uint8_t)workchain, 8);
        bits_hash(bits, account);
    } else if (kind == WORD_none) {
        bits_uint(bits, 0, 2);
    } else if (external && kind == WORD_extern) {
        for (unsigned left; (left = slice_bits_left(external));) {
            unsigned size = left < 64 ? left : 64;
            bits_uint(bits, slice_uint(external, size), size);
        }
    } else {
        return false;
    }
    return true;
}

bool is_usual_info(const Row_messages *row, const Slice *address, unsigned end, const Cell *cell)
{
    Bits bits;
    Slice external = *address;
    bool is_int = row->kind == WORD_int, is_in = row->kind == WORD_ext_in;
    bits_open(&bits);
    if (is_int) {
        bits_uint(&bits, row->ihr_disabled, 2);
        bits_uint(&bits, row->bounce, 1);
        bits_uint(&bits, row->bounced, 1);
    } else {
        bits_uint(&bits, is_in ? 2 : 3, 2);
    }
    if (!put_address(&bits, row->has_source, row->source_kind, row->source_workchain, &row->source,
                     is_in ? &external : NULL) ||
        !put_address(&bits, row->has_destination, row->destination_kind,
                     row->destination_workchain, &row->destination,
                     is_int || is_in ? NULL : &external))
        return false;
    if (is_int) {
        bits_grams(&bits, row->value);
        bits_uint(&bits, 0, 1);
        if (row->has_extra_flags)
            bits_amount(&bits, row->extra_flags, 4);
        else
            bits_grams(&bits, row->ihr_fee);
        bits_grams(&bits, row->fwd_fee);
    }
    if (is_in)
        bits_grams(&bits, row->import_fee);
    else {
        bits_uint(&bits, (uint64_t)row->created_lt, 64);
        bits_uint(&bits, (uint64_t)row->created_at, 32);
    }
    return !row->has_value_extra_currencies && (!is_in || row->has_import_fee) &&
           bits.count == end && bits_lead(&bits, cell);
}

/* Append the layout of a message to a recipe, and the bits of its external address to `tail`. */
static bool add_layout(Heap *recipe, Heap *tail, const MessageLayout *layout)
{
    Slice address = layout->address;
    unsigned bits = slice_bits_left(&address);
    if (!heap_append(recipe, &layout->flags, 1) || !heap_reserve(tail, 2 + MAX_BITS / 8 + 1))
        return false;
    if (!(layout->flags & EXTERNAL_ADDRESS))
        return true;
    store_be(tail->data + tail->size, bits, 2);
    tail->size += 2;
    for (unsigned size = bits & 7 ? bits & 7 : 8; bits; bits -= size, size = 8)
        tail->data[tail->size++] = (uint8_t)slice_uint(&address, size);
    return true;
}

Status keep_recipe(Block *block, Row_transactions *row, uint32_t cell, const Cells *cells,
                   const MessageLayout *layouts, size_t count)
{
    const Tree *tree = &block->tree;
    Heap *to = &block->decoder->tables[TABLE_transactions].heap, *tail = &block->decoder->tail;
    Span span;
    bool is_usual = is_usual_root(row, &tree->cells[cell]) &&
                    is_usual_holder(tree, row, &tree->cells[cells->messages]) &&
                    is_usual_description(tree, row, &tree->cells[cells->description]);
    for (size_t i = 0; i < count && is_usual; i++)
        is_usual = layouts[i].is_usual;
    if (!is_usual) {
        Status status = keep_bag(block, TABLE_transactions, cell, &span);
        SET(row, boc, span);
        return status;
    }
    size_t start = to->size;
    tail->size = 0;
    for (size_t i = 0; i < count; i++)
        if (!add_layout(to, tail, &layouts[i]))
            return NO_MEMORY;
    if (!heap_append(to, tail->data, tail->size))
        return NO_MEMORY;
    span = (Span){start, (uint32_t)(to->size - start)};
    SET(row, recipe, span);
    return spend(block, span.size) ? DONE : NOT_MINE;
}
