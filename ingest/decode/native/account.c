/* Decodes account cells to columns of `account_states`. TL-B: account$1, storage_info$_,
   account_storage$_, account_uninit$00, account_frozen$01, account_active$1, StateInit. Both forms
   of StorageInfo are supported: see ingest/decode/block/state.py. */
#include "decoder.h"

#define STORAGE_EXTRA_VERSION 11
#define STORAGE_EXTRA_TAG 1

/* MsgAddressInt: addr_std$10 or addr_var$11, either with Maybe Anycast. */
static bool skip_address(Slice *slice)
{
    if (!slice_bit(slice))
        return false;
    bool is_var = slice_bit(slice);
    if (slice_bit(slice)) {
        unsigned depth = (unsigned)slice_uint(slice, 5);
        if (!depth || depth > MAX_ANYCAST_DEPTH)
            return false;
        slice_skip(slice, depth);
    }
    slice_skip(slice, is_var ? 32 + (unsigned)slice_uint(slice, 9) : 8 + 256);
    return true;
}

/* Read a part of the account: its hash in the state, pruned or not. */
static bool read_part(const Block *block, Slice *slice, Hash *to)
{
    uint32_t cell;
    if (!slice_maybe_ref(slice, &cell))
        return false;
    *to = *tree_hash(&block->tree, cell, 0);
    return true;
}

static void read_state_init(const Block *block, Row_account_states *row, Slice *slice)
{
    Hash hash;
    SET(row, account_status, WORD_active);
    if (slice_bit(slice))
        SET(row, fixed_prefix_length, (int8_t)slice_uint(slice, 5));
    if (slice_bit(slice)) {
        SET(row, special_tick, slice_bit(slice));
        SET(row, special_tock, slice_bit(slice));
    }
    if (read_part(block, slice, &hash))
        SET(row, code_hash, hash);
    if (read_part(block, slice, &hash))
        SET(row, data_hash, hash);
    if (read_part(block, slice, &hash))
        SET(row, library_hash, hash);
}

static void read_inactive(Row_account_states *row, Slice *slice)
{
    if (slice_bit(slice)) {
        SET(row, account_status, WORD_frozen);
        SET(row, frozen_hash, slice_hash(slice));
    } else {
        SET(row, account_status, WORD_uninit);
    }
}

/* Read the account after StorageUsed.cells and .bits; false if it does not end with its cell.
   `currencies` becomes the root of the extra currencies. */
static bool read_storage(const Block *block, Row_account_states *row, Slice *slice,
                         bool storage_extra, uint32_t *currencies)
{
    if (!storage_extra) {
        slice_amount(slice, 3); /* public_cells */
    } else {
        uint64_t tag = slice_uint(slice, 3);
        if (tag > STORAGE_EXTRA_TAG)
            return false;
        slice_skip(slice, tag ? 8 * HASH_BYTES : 0); /* dict_hash */
    }
    SET(row, storage_last_paid, (int64_t)slice_uint(slice, 32));
    if (slice_bit(slice))
        SET(row, storage_due_payment, slice_grams(slice));
    SET(row, storage_last_trans_lt, slice_lt(slice));
    SET(row, balance, slice_grams(slice));
    if (slice_maybe_ref(slice, currencies))
        SET(row, extra_currencies_hash, *tree_hash(&block->tree, *currencies, 0));
    if (slice_bit(slice))
        read_state_init(block, row, slice);
    else
        read_inactive(row, slice);
    return !slice->failed && !slice_bits_left(slice) && !slice_refs_left(slice);
}

/* Write the extra currencies, unless part of them is pruned. */
static Status read_currencies(Block *block, Row_account_states *row, uint32_t root)
{
    Walk walk;
    uint32_t cell;
    unsigned depth;
    bool is_whole = true;
    walk_open(&walk, block);
    Status status = walk_push(&walk, root, 0) ? DONE : NO_MEMORY;
    while (status == DONE && (status = walk_next(&walk, &cell, &depth)) == DONE)
        is_whole &= cell_kind(&block->tree.cells[cell]) != PRUNED;
    heap_free(&walk.todo);
    if (status == NO_MEMORY || !is_whole)
        return status == NO_MEMORY ? NO_MEMORY : DONE;
    Span text = {0};
    status = write_currencies(block, TABLE_account_states, root, &text);
    SET(row, extra_currencies, text);
    return status;
}

Status read_account(Block *block, Row_account_states *row, uint32_t cell)
{
    Slice slice = slice_open(&block->tree, cell);
    uint32_t currencies;
    /* account_none$0 has a constant hash, which the caller knows. */
    if (!slice_bit(&slice) || !skip_address(&slice))
        return NOT_MINE;
    SET(row, storage_cells, (int64_t)slice_amount(&slice, 3).low);
    SET(row, storage_bits, (int64_t)slice_amount(&slice, 3).low);
    Slice peek = slice, start = slice;
    const Row_account_states before = *row;
    bool is_plain = slice_uint(&peek, 3) == 0;
    bool is_old = !is_plain && block->header.has_gen_software_version &&
                  block->header.gen_software_version < STORAGE_EXTRA_VERSION;
    if (!read_storage(block, row, &slice, !is_old, &currencies)) {
        if (is_plain)
            return NOT_MINE;
        *row = before;
        slice = start;
        if (!read_storage(block, row, &slice, is_old, &currencies))
            return NOT_MINE;
    }
    if (slice.wide)
        return NOT_MINE;
    return row->has_extra_currencies_hash ? read_currencies(block, row, currencies) : DONE;
}
