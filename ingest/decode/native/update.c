/* Decodes a block's Merkle update: states of touched accounts, new cells, size of the queue. TL-B:
   !merkle_update#04, shard_state#9023afe2, split_state#5f327da5, ShardAccounts, account_descr$_.
   Like ingest/decode/block/state.py and state.py; a block that changes public libraries is left to
   them. */
#include "decoder.h"

#define STATE_TAG 0x9023afe2
#define SPLIT_STATE_TAG 0x5f327da5
#define ACCOUNT_KEY_BITS 256
#define MASTERCHAIN (-1)

/* SHA-256 of 000140: the state hash of a destroyed account, account_none$0. */
static const Hash NONEXIST = {{0x90, 0xae, 0xc8, 0x96, 0x5a, 0xfa, 0xbb, 0x16, 0xeb, 0xc3, 0xcb,
                               0x9b, 0x40, 0x8e, 0xba, 0xe7, 0x1b, 0x61, 0x8d, 0x78, 0x78, 0x8b,
                               0xc8, 0x0d, 0x09, 0x84, 0x35, 0x93, 0xca, 0xc9, 0x8d, 0xa4}};

typedef struct {
    uint32_t queue, accounts, totals;
} State;

static bool is_pruned(const Block *block, uint32_t cell)
{
    return cell_kind(&block->tree.cells[cell]) == PRUNED;
}

/* ShardStateUnsplit. */
static bool read_state(const Block *block, uint32_t cell, State *to)
{
    Slice slice = slice_open(&block->tree, cell);
    int64_t workchain;
    uint64_t shard;
    uint32_t custom;
    if (slice_uint(&slice, 32) != STATE_TAG)
        return false;
    slice_skip(&slice, 32); /* global_id */
    if (!read_shard_ident(&slice, &workchain, &shard))
        return false;
    /* seqno, vert_seqno, gen_utime, gen_lt, min_ref_mc_seqno */
    slice_skip(&slice, 3 * 32 + 64 + 32);
    to->queue = slice_ref(&slice);
    slice_skip(&slice, 1); /* before_split */
    to->accounts = slice_ref(&slice);
    to->totals = slice_ref(&slice);
    slice_maybe_ref(&slice, &custom);
    return !slice.failed;
}

/* Read the old side: one state, or the two that an after_merge block joins, without pruned ones. */
static bool read_state_sides(const Block *block, uint32_t old, State sides[MAX_REFS],
                             unsigned *count)
{
    *count = 0;
    if (is_pruned(block, old))
        return true;
    Slice slice = slice_open(&block->tree, old);
    if (slice_uint(&slice, 32) != SPLIT_STATE_TAG || slice.failed)
        return !slice.failed && read_state(block, old, &sides[(*count)++]);
    while (slice_refs_left(&slice)) {
        uint32_t state = slice_ref(&slice);
        if (!is_pruned(block, state) && !read_state(block, state, &sides[(*count)++]))
            return false;
    }
    return true;
}

Status append_state(Block *block, const Touched *touched, uint32_t entry)
{
    Row_account_states *row = APPEND(block->decoder->tables, account_states);
    if (!row)
        return NO_MEMORY;
    SET(row, workchain, block->header.workchain);
    SET(row, account, touched->account);
    SET(row, mc_seqno, block->raw->mc_seqno);
    SET(row, shard, block->header.shard);
    SET(row, block_seqno, block->header.seqno);
    SET(row, utime, block->header.gen_utime);
    SET(row, hash, touched->new_hash);
    SET(row, last_trans_lt, touched->last_trans_lt);
    SET(row, last_trans_hash, touched->last_trans_hash);
    SET(row, balance, 0);
    if (hash_equal(&touched->new_hash, &NONEXIST)) {
        SET(row, account_status, WORD_nonexist);
        return DONE;
    }
    if (entry == NO_ENTRY || !hash_equal(tree_hash(&block->tree, entry, 0), &touched->new_hash))
        return NOT_MINE;
    return read_account(block, row, entry);
}

bool read_entry(Slice *value, uint32_t *cell)
{
    slice_skip(value, 5); /* DepthBalanceInfo.split_depth */
    slice_skip_currencies(value);
    *cell = slice_ref(value);
    return slice_bits_left(value) >= 256 + 64 && !value->failed;
}

/* Find the Account cells of touched accounts among the entries on the new side; both are in
   ascending order. `entries` gets one for each account, `roots` those present. */
static Status pair_accounts(Block *block, Hashmap *map, Heap *entries, Heap *roots)
{
    const Touched *touched = (const Touched *)block->touched.data;
    size_t count = block->touched.size / sizeof *touched, at = 0;
    const uint32_t none = NO_ENTRY;
    bool has_room = true;
    Hash account;
    Slice value;
    while (has_room && hashmap_next(map, &account, &value)) {
        uint32_t cell;
        int order = 1;
        if (!read_entry(&value, &cell))
            return NOT_MINE;
        for (; has_room && at < count && order > 0; at++) {
            order = memcmp(account.bytes, touched[at].account.bytes, HASH_BYTES);
            if (order < 0)
                break;
            has_room = heap_append(entries, order ? &none : &cell, sizeof cell) &&
                       (order || hash_equal(&touched[at].new_hash, &NONEXIST) ||
                        heap_append(roots, &cell, sizeof cell));
        }
    }
    for (; has_room && at < count; at++)
        has_room = heap_append(entries, &none, sizeof none);
    return !has_room ? NO_MEMORY : map->failed ? NOT_MINE : DONE;
}

static Status append_states(Block *block, Hashmap *map, Heap *roots)
{
    const Touched *touched = (const Touched *)block->touched.data;
    Heap entries = {0};
    Status status = pair_accounts(block, map, &entries, roots);
    if (status == DONE)
        status = tree_digest(&block->tree, (const uint32_t *)roots->data,
                             roots->size / sizeof(uint32_t));
    for (size_t i = 0; status == DONE && i < entries.size / sizeof(uint32_t); i++)
        status = append_state(block, &touched[i], ((const uint32_t *)entries.data)[i]);
    heap_free(&entries);
    return status;
}

/* Append the rows of all touched accounts; `roots` gets the Account cells of those that exist. */
static Status read_accounts(Block *block, uint32_t new, Heap *roots)
{
    State state;
    Hashmap map;
    uint32_t root;
    if (!block->touched.size)
        return DONE;
    if (!read_state(block, new, &state))
        return NOT_MINE;
    hashmap_open(&map, &block->tree, 0, ACCOUNT_KEY_BITS);
    map.count = 0; /* the map is empty unless found below */
    if (!is_pruned(block, state.accounts)) {
        Slice slice = slice_open(&block->tree, state.accounts);
        if (slice_maybe_ref(&slice, &root))
            hashmap_open(&map, &block->tree, root, ACCOUNT_KEY_BITS);
        if (slice.failed)
            return NOT_MINE;
    }
    map.skip_pruned = true;
    return append_states(block, &map, roots);
}

/* Return the root of the public libraries, if the state has any and they are not pruned. */
static bool read_libraries(const Block *block, const State *state, bool *has, uint32_t *root)
{
    *has = false;
    if (is_pruned(block, state->totals))
        return true;
    Slice slice = slice_open(&block->tree, state->totals);
    slice_skip(&slice, 128); /* overload_history, underload_history */
    slice_skip_currencies(&slice);
    slice_skip_currencies(&slice);
    *has = slice_maybe_ref(&slice, root);
    return !slice.failed;
}

/* Return DONE if clearly no public library changed: there are none on either side, or both are
   pruned with the same hash. */
static Status check_libraries(const Block *block, uint32_t old, uint32_t new)
{
    State state, sides[MAX_REFS];
    unsigned count;
    bool has_new, has_old = false;
    uint32_t new_root, old_root;
    if (!read_state(block, new, &state) || !read_libraries(block, &state, &has_new, &new_root))
        return NOT_MINE;
    if (is_pruned(block, state.totals))
        return DONE;
    if (!read_state_sides(block, old, sides, &count))
        return NOT_MINE;
    if (count && !read_libraries(block, &sides[0], &has_old, &old_root))
        return NOT_MINE;
    if (has_new != has_old)
        return NOT_MINE;
    if (!has_new)
        return DONE;
    bool same = is_pruned(block, new_root) && is_pruned(block, old_root) &&
                memcmp(pruned_hash(&block->tree.cells[new_root], 0),
                       pruned_hash(&block->tree.cells[old_root], 0), HASH_BYTES) == 0;
    return same ? DONE : NOT_MINE;
}

/* Remove from `pruned` the cells of accounts on the old side; `wanted` is how many are left. Cells
   that are pruned there, too, come first: their hashes need not be computed. */
static Status drop_old(Block *block, const Heap *accounts, HashSet *pruned, bool is_digested,
                       size_t *wanted)
{
    Walk walk;
    uint32_t cell;
    unsigned depth;
    Status status = DONE;
    walk_open(&walk, block);
    for (size_t i = 0; status == DONE && i < accounts->size / sizeof cell; i++)
        status = walk_push(&walk, ((const uint32_t *)accounts->data)[i], 0) ? DONE : NO_MEMORY;
    while (status == DONE && *wanted && (status = walk_next(&walk, &cell, &depth)) == DONE) {
        const Cell *at = &block->tree.cells[cell];
        const void *hash = NULL;
        if (cell_kind(at) == PRUNED && cell_mask(at) >> depth)
            hash = pruned_hash(at, depth);
        else if (is_digested)
            hash = tree_hash(&block->tree, cell, depth);
        *wanted -= hash && drop_pruned(block, pruned, hash);
    }
    heap_free(&walk.todo);
    return status == NO_MEMORY ? NO_MEMORY : DONE;
}

/* Add to `carried` the cells of the extra that are still wanted: parts of messages that were
   waiting in the queue (see state.py). */
static Status find_carried(Block *block, const HashSet *pruned, Heap *carried)
{
    Walk walk;
    uint32_t cell;
    unsigned depth;
    Status status = tree_digest(&block->tree, &block->extra, 1);
    if (status != DONE)
        return status;
    walk_open(&walk, block);
    status = walk_push(&walk, block->extra, 0) ? DONE : NO_MEMORY;
    while (status == DONE && (status = walk_next(&walk, &cell, &depth)) == DONE)
        if (!is_pruned(block, cell) &&
            has_pruned(block, pruned, tree_hash(&block->tree, cell, MAX_LEVEL)) &&
            !heap_append(carried, &cell, sizeof cell))
            status = NO_MEMORY;
    heap_free(&walk.todo);
    return status == NO_MEMORY ? NO_MEMORY : DONE;
}

/* Find the cells that are pruned on the new side. */
static Status trace_pruned(Block *block, uint32_t old, HashSet *pruned, Heap *carried)
{
    State sides[MAX_REFS];
    unsigned count;
    size_t wanted = pruned->count;
    Heap accounts = {0};
    if (!read_state_sides(block, old, sides, &count))
        return NOT_MINE;
    Status status = DONE;
    for (unsigned i = 0; status == DONE && i < count; i++)
        if (!heap_append(&accounts, &sides[i].accounts, sizeof sides[i].accounts))
            status = NO_MEMORY;
    if (status == DONE)
        status = drop_old(block, &accounts, pruned, false, &wanted);
    if (status == DONE && wanted) {
        status = tree_digest(&block->tree, (const uint32_t *)accounts.data,
                             count);
        if (status == DONE)
            status = drop_old(block, &accounts, pruned, true, &wanted);
    }
    if (status == DONE && wanted)
        status = find_carried(block, pruned, carried);
    heap_free(&accounts);
    return status;
}

/* Count the leaves of a queue; `*is_known` is false if a part of it is pruned. */
static Status count_leaves(const Block *block, uint32_t root, int64_t *count, bool *is_known)
{
    Heap todo = {0};
    uint32_t cell, budget = block->tree.count; /* crafted blocks share cells many times */
    bool has_room = heap_append(&todo, &root, sizeof root);
    *count = 0;
    *is_known = true;
    while (has_room && *is_known && todo.size && budget--) {
        todo.size -= sizeof cell;
        memcpy(&cell, todo.data + todo.size, sizeof cell);
        const Cell *at = &block->tree.cells[cell];
        *is_known = !cell_kind(at);
        if (cell_ref_count(at) == 2)
            has_room = heap_append(&todo, at->refs, 2 * sizeof cell);
        else
            ++*count;
    }
    bool is_done = !*is_known || !todo.size;
    heap_free(&todo);
    return !has_room ? NO_MEMORY : is_done ? DONE : NOT_MINE;
}

/* Append the size of the outbound queue after the block. TL-B: OutMsgQueueInfo, like queue.py. */
static Status append_queue_size(Block *block, uint32_t new)
{
    State state;
    uint32_t root;
    int64_t size = 0;
    bool is_known = false;
    Status status = DONE;
    if (!read_state(block, new, &state))
        return NOT_MINE;
    if (!cell_kind(&block->tree.cells[state.queue])) {
        Slice slice = slice_open(&block->tree, state.queue);
        bool has_queue = slice_maybe_ref(&slice, &root);
        slice_skip(&slice, 64 + 1); /* the augmentation, and whether proc_info is empty */
        is_known = true;
        if (has_queue && slice_bit(&slice) && slice_bits_left(&slice) >= 4 + 1 + 64 + 1 &&
            !slice_uint(&slice, 4) && slice_skip(&slice, 1 + 64) && slice_bit(&slice))
            size = (int64_t)slice_uint(&slice, 48);
        else if (has_queue && !slice.failed)
            status = count_leaves(block, root, &size, &is_known);
        if (slice.failed)
            return NOT_MINE;
    }
    Row_queue_sizes *row = status == DONE ? APPEND(block->decoder->tables, queue_sizes) : NULL;
    if (!row)
        return status == DONE ? NO_MEMORY : status;
    SET(row, workchain, block->header.workchain);
    SET(row, shard, block->header.shard);
    SET(row, seqno, block->header.seqno);
    SET(row, mc_seqno, block->raw->mc_seqno);
    if (is_known)
        SET(row, out_queue_size, size);
    return DONE;
}

Status decode_update(Block *block)
{
    const Cell *update = &block->tree.cells[block->state_update];
    uint32_t old = update->refs[0], new = update->refs[1];
    Heap roots = {0}, carried = {0};
    HashSet pruned = {0}, ignored = {0};
    Status status = read_accounts(block, new, &roots);
    if (status == DONE && block->header.workchain == MASTERCHAIN)
        status = check_libraries(block, old, new);
    if (status == DONE)
        status = keep_cells(block, &roots, 0, &pruned);
    if (status == DONE && pruned.count)
        status = trace_pruned(block, old, &pruned, &carried);
    if (status == DONE)
        status = keep_cells(block, &carried, MAX_LEVEL, &ignored);
    if (status == DONE)
        status = append_queue_size(block, new);
    heap_free(&roots);
    heap_free(&carried);
    free(pruned.slots);
    free(ignored.slots);
    return status;
}
