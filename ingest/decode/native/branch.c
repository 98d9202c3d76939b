/* Decodes accounts of a whole state and their cells, like ingest/decode/wholestate.py. TL-B:
   ShardAccounts = HashmapAugE 256 ShardAccount DepthBalanceInfo. */
#include "branch.h"

#define HASHES_BIT 0x10
#define ACCOUNT_BITS 256
#define NOWHERE UINT32_MAX
#define MAX_CELLS (UINT32_MAX / 16)

/* The order of cells in a tree: each precedes its children. */
typedef struct {
    uint32_t *slots; /* number of a cell + 1, by handle */
    size_t size;
    uint32_t *refs;  /* MAX_REFS numbers a cell */
    uint32_t *place;
    uint8_t *marks;
    Cell *cells;
} Order;

enum { NEW, OPENED, PLACED };

static void order_free(Order *order)
{
    free(order->slots);
    free(order->refs);
    free(order->place);
    free(order->marks);
    free(order->cells);
}

static bool order_open(Order *order, uint32_t count)
{
    size_t size = 1024;
    while (size < 2 * (size_t)count)
        size *= 2;
    *order = (Order){
        .slots = calloc(size, sizeof *order->slots),
        .size = size,
        .refs = malloc((size_t)count * MAX_REFS * sizeof *order->refs),
        .place = malloc(count * sizeof *order->place),
        .marks = calloc(count, 1),
        .cells = malloc(count * sizeof *order->cells),
    };
    return order->slots && order->refs && order->place && order->marks && order->cells;
}

/* Return the slot of a handle: that of its cell, or the free one to use for it. */
static uint32_t *find_slot(const Order *order, const Branch *branch, uint64_t seed,
                           const uint8_t *handle)
{
    Hash key = {0};
    memcpy(key.bytes, handle, branch->width);
    size_t at = hash_mix(&key, seed) & (order->size - 1);
    while (order->slots[at] &&
           memcmp(branch->cells[order->slots[at] - 1].handle, handle, branch->width) != 0)
        at = (at + 1) & (order->size - 1);
    return &order->slots[at];
}

/* Parse a cell without its references. */
static bool read_cell(const PackedCell *packed, unsigned width, Cell *cell)
{
    if (packed->size < 2 || packed->data[0] & HASHES_BIT || (packed->data[0] & 7) > MAX_REFS)
        return false;
    *cell = (Cell){.data = packed->data + 2, .d1 = packed->data[0], .d2 = packed->data[1]};
    unsigned size = cell_bytes(cell);
    if (packed->size != 2 + size + (size_t)cell_ref_count(cell) * width)
        return false;
    unsigned last = size ? cell->data[size - 1] : 0;
    cell->bits = (uint16_t)(cell->d2 & 1 && !(last & 0x7F) ? 0 : measure_bits(cell->d2, last));
    return !(cell->d2 & 1) || last & 0x7F;
}

static Status read_cells(Order *order, const Branch *branch, uint64_t seed)
{
    for (uint32_t i = 0; i < branch->count; i++) {
        uint32_t *slot = find_slot(order, branch, seed, branch->cells[i].handle);
        if (*slot || !read_cell(&branch->cells[i], branch->width, &order->cells[i]))
            return NOT_MINE;
        *slot = i + 1;
    }
    for (uint32_t i = 0; i < branch->count; i++) {
        const Cell *cell = &order->cells[i];
        for (unsigned j = 0; j < cell_ref_count(cell); j++) {
            const uint8_t *handle = cell->data + cell_bytes(cell) + j * branch->width;
            uint32_t kid = *find_slot(order, branch, seed, handle);
            if (!kid)
                return NOT_MINE;
            order->refs[i * MAX_REFS + j] = kid - 1;
        }
    }
    return DONE;
}

/* Place each cell after all that refer to it; fail if one is its own descendant. */
static Status place_cells(Order *order, uint32_t count)
{
    Heap todo = {0}; /* numbers of cells, doubled; odd ones have had their children placed */
    uint32_t item = 0, left = count;
    bool has_room = heap_append(&todo, &item, sizeof item), is_sound = true;
    while (has_room && is_sound && todo.size) {
        todo.size -= sizeof item;
        memcpy(&item, todo.data + todo.size, sizeof item);
        uint32_t cell = item >> 1;
        if (item & 1) {
            order->place[cell] = --left;
            order->marks[cell] = PLACED;
            continue;
        }
        is_sound = order->marks[cell] != OPENED;
        if (order->marks[cell] != NEW)
            continue;
        order->marks[cell] = OPENED;
        item |= 1;
        has_room = heap_append(&todo, &item, sizeof item);
        for (unsigned i = 0; has_room && i < cell_ref_count(&order->cells[cell]); i++) {
            uint32_t kid = order->refs[cell * MAX_REFS + i] << 1;
            has_room = heap_append(&todo, &kid, sizeof kid);
        }
    }
    heap_free(&todo);
    return !has_room ? NO_MEMORY : is_sound && !left ? DONE : NOT_MINE;
}

/* If handles are hashes, compare them with the computed ones. */
static Status check_handles(const Tree *tree, const Order *order, const Branch *branch)
{
    for (uint32_t i = 0; branch->width == HASH_BYTES && i < branch->count; i++)
        if (memcmp(tree_hash(tree, order->place[i], MAX_LEVEL)->bytes, branch->cells[i].handle,
                   HASH_BYTES) != 0)
            return NOT_MINE;
    return DONE;
}

/* Build a tree of the cells, the root first, with all hashes. */
static Status take_cells(Block *block, const Branch *branch)
{
    Order order;
    Cell *cells = malloc(branch->count * sizeof *cells);
    Status status = order_open(&order, branch->count) && cells ? DONE : NO_MEMORY;
    if (status == DONE)
        status = read_cells(&order, branch, block->decoder->seed);
    if (status == DONE)
        status = place_cells(&order, branch->count);
    for (uint32_t i = 0; status == DONE && i < branch->count; i++) {
        Cell *cell = &cells[order.place[i]];
        *cell = order.cells[i];
        for (unsigned j = 0; j < cell_ref_count(cell); j++)
            cell->refs[j] = order.place[order.refs[i * MAX_REFS + j]];
    }
    if (status == DONE)
        status = tree_take(&block->tree, cells, branch->count);
    if (status == DONE)
        status = tree_digest_whole(&block->tree);
    if (status == DONE)
        status = check_handles(&block->tree, &order, branch);
    order_free(&order);
    free(cells);
    return status;
}

/* Return whether an account gets no row; accounts are in order, and `*at` advances with them. */
static bool is_skipped(const Branch *branch, const Hash *account, size_t *at)
{
    int order = -1;
    while (*at < branch->skipped_count &&
           (order = memcmp(branch->skipped + *at * HASH_BYTES, account->bytes, HASH_BYTES)) < 0)
        ++*at;
    return *at < branch->skipped_count && order == 0;
}

/* Append the rows of accounts; `roots` gets the Account cells. */
static Status append_accounts(Block *block, const Branch *branch, Heap *roots, size_t *accounts)
{
    Table *table = &block->decoder->tables[TABLE_account_states];
    Hashmap map;
    Touched touched;
    Slice value;
    size_t at = 0;
    Status status = DONE;
    hashmap_open_below(&map, &block->tree, 0, ACCOUNT_BITS, &branch->key, branch->used);
    for (*accounts = 0; status == DONE && hashmap_next(&map, &touched.account, &value);
         ++*accounts) {
        uint32_t cell;
        if (!read_entry(&value, &cell))
            return NOT_MINE;
        touched.last_trans_hash = slice_hash(&value);
        touched.last_trans_lt = slice_lt(&value);
        touched.new_hash = *tree_hash(&block->tree, cell, 0);
        if (value.wide)
            return NOT_MINE;
        status = append_state(block, &touched, cell);
        if (status != DONE)
            break;
        const Row_account_states *row =
            ROW(block->decoder->tables, account_states, table->count - 1);
        bool is_kept = !branch->only_active || row->account_status == WORD_active;
        if (is_kept && !heap_append(roots, &cell, sizeof cell))
            status = NO_MEMORY;
        if (!is_kept || is_skipped(branch, &touched.account, &at))
            table->count--;
    }
    return status == DONE && map.failed ? NOT_MINE : status;
}

Status decode_branch(Decoder *decoder, const RawBlock *raw, const Row_blocks *header,
                     const Branch *branch, size_t *accounts)
{
    Block block = {.decoder = decoder, .raw = raw, .tree = decoder->tree, .header = *header};
    Heap roots = {0};
    HashSet pruned = {0};
    block.budget = BUDGET_BYTES;
    for (uint32_t i = 0; i < branch->count; i++)
        block.budget += BUDGET_FACTOR * branch->cells[i].size;
    Status status = branch->count && branch->count < MAX_CELLS ? DONE : NOT_MINE;
    if (status == DONE)
        status = take_cells(&block, branch);
    block.known_count = block.tree.count;
    block.marks = heap_renew(&decoder->marks, block.known_count, 1);
    if (status == DONE && !block.marks)
        status = NO_MEMORY;
    if (status == DONE)
        status = append_accounts(&block, branch, &roots, accounts);
    if (status == DONE)
        status = keep_cells(&block, &roots, 0, &pruned);
    if (status == DONE && pruned.count)
        status = NOT_MINE; /* a whole state has no pruned cells */
    heap_free(&roots);
    free(pruned.slots);
    tree_reset(&block.tree);
    decoder->tree = block.tree;
    return status;
}
