/* Decodes transaction cells to rows of `transactions` and `messages`. TL-B: transaction$0111,
   HASH_UPDATE, ShardAccountBlocks, acc_trans#5. Like ingest/decode/block/transaction.py and
   block.py. */
#include "decoder.h"

#define TRANSACTION_TAG 7
#define ACCOUNT_BLOCK_TAG 5
#define OUT_KEY_BITS 15
#define LT_KEY_BITS 64
#define ACCOUNT_KEY_BITS 256
#define MICROSECONDS 1000000

/* HASH_UPDATE: update_hashes#72 old_hash:bits256 new_hash:bits256, and nothing else. */
static bool read_hash_update(Block *block, Row_transactions *row, uint32_t index)
{
    const Cell *cell = &block->tree.cells[index];
    Hash before, after;
    if (cell->d1 || cell->d2 != 2 * (1 + 2 * HASH_BYTES) || cell->data[0] != 0x72)
        return false;
    memcpy(before.bytes, cell->data + 1, HASH_BYTES);
    memcpy(after.bytes, cell->data + 1 + HASH_BYTES, HASH_BYTES);
    SET(row, account_state_hash_before, before);
    SET(row, account_state_hash_after, after);
    return true;
}

/* Append the row of a message; a cell that was decoded before is not decoded again. */
static Status append_message(Block *block, const Row_transactions *of, uint32_t cell, Word direction,
                             int32_t index)
{
    Table *tables = block->decoder->tables;
    Row_messages *row = APPEND(tables, messages);
    if (!row)
        return NO_MEMORY;
    if (!spend(block, sizeof *row))
        return NOT_MINE;
    uint32_t known = cell < block->known_count ? block->known[cell] : 0;
    if (known) {
        *row = *ROW(tables, messages, known - 1);
    } else {
        Status status = decode_message(block, row, cell);
        if (status != DONE)
            return status;
        if (cell < block->known_count)
            block->known[cell] = (uint32_t)tables[TABLE_messages].count;
    }
    SET(row, tx_workchain, of->workchain);
    SET(row, tx_account, of->account);
    SET(row, tx_lt, of->lt);
    SET(row, tx_hash, of->hash);
    SET(row, mc_seqno, of->mc_seqno);
    SET(row, now, of->now);
    SET(row, direction, (uint8_t)direction);
    SET(row, msg_index, index);
    return DONE;
}

/* ^[in_msg:(Maybe ^Message) out_msgs:(HashmapE 15 ^Message)]. */
static Status read_messages(Block *block, Row_transactions *row, uint32_t cell)
{
    Slice slice = slice_open(&block->tree, cell), value;
    bool has_in = slice_bit(&slice), has_out = slice_bit(&slice);
    int32_t count = 0;
    Status status = DONE;
    if (has_in) {
        uint32_t in = slice_ref(&slice);
        if (slice.failed)
            return NOT_MINE;
        status = append_message(block, row, in, WORD_in, 0);
        SET(row, in_msg_hash, *tree_hash(&block->tree, in, MAX_LEVEL));
    }
    if (has_out && status == DONE) {
        Hashmap map;
        Hash key;
        hashmap_open(&map, &block->tree, slice_ref(&slice), OUT_KEY_BITS);
        while (status == DONE && hashmap_next(&map, &key, &value)) {
            uint32_t out = slice_ref(&value);
            if (value.failed || load_be(key.bytes, 2) >> 1 != (uint64_t)count)
                return NOT_MINE;
            status = append_message(block, row, out, WORD_out, count++);
        }
        if (map.failed)
            return NOT_MINE;
    }
    if (status == DONE && (slice.failed || count != row->outmsg_cnt))
        return NOT_MINE;
    return status;
}

static void read_head(Row_transactions *row, Slice *slice)
{
    static const uint8_t statuses[] = {WORD_uninit, WORD_frozen, WORD_active, WORD_nonexist};
    SET(row, account, slice_hash(slice));
    SET(row, lt, slice_lt(slice));
    SET(row, prev_trans_hash, slice_hash(slice));
    SET(row, prev_trans_lt, slice_lt(slice));
    SET(row, now, (int64_t)slice_uint(slice, 32));
    SET(row, time, row->now * MICROSECONDS);
    SET(row, outmsg_cnt, (int32_t)slice_uint(slice, 15));
    SET(row, orig_status, statuses[slice_uint(slice, 2)]);
    SET(row, end_status, statuses[slice_uint(slice, 2)]);
    SET(row, total_fees, slice_grams(slice));
}

static void set_place(const Block *block, Row_transactions *row, uint32_t cell)
{
    SET(row, workchain, block->header.workchain);
    SET(row, hash, *tree_hash(&block->tree, cell, MAX_LEVEL));
    SET(row, shard, block->header.shard);
    SET(row, block_seqno, block->header.seqno);
    SET(row, mc_seqno, block->raw->mc_seqno);
}

/* Fill the row of a transaction and append the rows of its messages. */
static Status decode_transaction(Block *block, Row_transactions *row, uint32_t cell)
{
    Slice slice = slice_open(&block->tree, cell);
    uint32_t currencies;
    Span span = {0};
    Status status;
    if (cell_mask(&block->tree.cells[cell]) || slice_uint(&slice, 4) != TRANSACTION_TAG)
        return NOT_MINE;
    set_place(block, row, cell);
    read_head(row, &slice);
    uint32_t messages = slice_ref(&slice);
    if (slice_maybe_ref(&slice, &currencies)) {
        status = write_currencies(block, TABLE_transactions, currencies, &span);
        if (status != DONE)
            return status;
        SET(row, total_fees_extra_currencies, span);
    }
    uint32_t update = slice_ref(&slice);
    uint32_t description = slice_ref(&slice);
    if (slice.failed || slice.wide || !read_hash_update(block, row, update))
        return NOT_MINE;
    status = read_messages(block, row, messages);
    if (status == DONE)
        status = read_description(block, row, description);
    if (status == DONE)
        status = keep_bag(block, TABLE_transactions, cell, &span);
    SET(row, boc, span);
    return status;
}

/* A transaction cell with its account and lt. */
typedef struct {
    Hash account;
    uint64_t lt;
    uint32_t cell;
} Found;

/* transactions:(HashmapAug 64 ^Transaction CurrencyCollection), inline in an AccountBlock. */
static Status find_of_account(Block *block, const Slice *leaf, const Hash *account)
{
    Decoder *decoder = block->decoder;
    Hashmap map;
    Hash key;
    Slice value;
    hashmap_open_inline(&map, &block->tree, leaf, LT_KEY_BITS);
    while (hashmap_next(&map, &key, &value)) {
        slice_skip_currencies(&value);
        Found found = {.account = *account, .lt = load_be64(key.bytes)};
        found.cell = slice_ref(&value);
        if (value.failed || !spend(block, sizeof(Row_transactions)))
            return NOT_MINE;
        if (!heap_append(&decoder->found, &found, sizeof found) ||
            !heap_append(&decoder->cells, &found.cell, sizeof found.cell))
            return NO_MEMORY;
    }
    return map.failed ? NOT_MINE : DONE;
}

/* ShardAccountBlocks = HashmapAugE 256 AccountBlock CurrencyCollection: list the transactions. */
static Status find_transactions(Block *block)
{
    Slice blocks = slice_open(&block->tree, block->account_blocks), leaf;
    Hashmap map;
    Hash key;
    uint32_t root;
    if (!slice_maybe_ref(&blocks, &root))
        return blocks.failed ? NOT_MINE : DONE;
    if (blocks.failed)
        return NOT_MINE;
    hashmap_open(&map, &block->tree, root, ACCOUNT_KEY_BITS);
    while (hashmap_next(&map, &key, &leaf)) {
        slice_skip_currencies(&leaf);
        bool right_tag = slice_uint(&leaf, 4) == ACCOUNT_BLOCK_TAG;
        Hash account = slice_hash(&leaf);
        if (leaf.failed || !right_tag || !hash_equal(&account, &key))
            return NOT_MINE;
        Status status = find_of_account(block, &leaf, &account);
        if (status != DONE)
            return status;
    }
    return map.failed ? NOT_MINE : DONE;
}

static Status decode_found(Block *block, const Found *found)
{
    Row_transactions *row = APPEND(block->decoder->tables, transactions);
    if (!row)
        return NO_MEMORY;
    Status status = decode_transaction(block, row, found->cell);
    if (status != DONE)
        return status;
    if (!hash_equal(&row->account, &found->account) || (uint64_t)row->lt != found->lt)
        return NOT_MINE;
    const Touched now = {row->account, row->hash, row->account_state_hash_after, row->lt};
    size_t before = block->touched.size;
    if (before) {
        Touched *last = (Touched *)(block->touched.data + before - sizeof now);
        if (hash_equal(&last->account, &now.account)) {
            *last = now;
            return DONE;
        }
    }
    return heap_append(&block->touched, &now, sizeof now) ? DONE : NO_MEMORY;
}

Status decode_transactions(Block *block)
{
    Decoder *decoder = block->decoder;
    decoder->found.size = decoder->cells.size = 0;
    Status status = find_transactions(block);
    size_t count = decoder->cells.size / sizeof(uint32_t);
    if (status == DONE)
        status = tree_digest(&block->tree, (const uint32_t *)decoder->cells.data,
                             count);
    if (status == DONE)
        status = writer_open(&decoder->writer, &block->tree);
    for (size_t i = 0; status == DONE && i < count; i++)
        status = decode_found(block, (const Found *)decoder->found.data + i);
    SET(&block->header, tx_count, (int64_t)count);
    return status;
}
