/* Stores the cells of account states once per hash. Like ingest/decode/block/state.py: a cell is
   stored with the hash, level and child hashes that it has in the state. */
#include "decoder.h"

#define MIN_SLOTS 1024
/* Marks a number that was removed from a set. */
#define DROPPED 0x80000000u

void walk_open(Walk *walk, Block *block)
{
    *walk = (Walk){.block = block};
    memset(block->marks, 0, block->known_count);
}

bool walk_push(Walk *walk, uint32_t cell, unsigned depth)
{
    uint8_t *marks = &walk->block->marks[cell];
    uint32_t at = cell << 2 | depth;
    if (*marks >> depth & 1)
        return true;
    *marks |= (uint8_t)(1u << depth);
    return heap_append(&walk->todo, &at, sizeof at);
}

Status walk_next(Walk *walk, uint32_t *index, unsigned *depth)
{
    uint32_t at;
    if (!walk->todo.size)
        return NOT_MINE;
    walk->todo.size -= sizeof at;
    memcpy(&at, walk->todo.data + walk->todo.size, sizeof at);
    *index = at >> 2;
    *depth = at & 3;
    const Cell *cell = &walk->block->tree.cells[*index];
    unsigned below = *depth + (cell_is_merkle(cell) && *depth < MAX_LEVEL);
    for (unsigned i = 0; i < cell_ref_count(cell); i++)
        if (!walk_push(walk, cell->refs[i], below))
            return NO_MEMORY;
    return DONE;
}

/* Returns the hash with a number; each of the two sets has its own function. */
typedef const Hash *HashAt(const Block *block, uint32_t number);

static const Hash *row_hash(const Block *block, uint32_t number)
{
    return &ROW(block->decoder->tables, state_cells, number)->hash;
}

static const Hash *digest_hash(const Block *block, uint32_t number)
{
    return &block->tree.hashes[number];
}

static uint32_t *find_slot(const Block *block, const HashSet *set, HashAt *hash_at,
                           const Hash *hash)
{
    size_t mask = set->size - 1, at = hash_mix(hash, block->decoder->seed) & mask;
    while (set->slots[at] &&
           !hash_equal(hash_at(block, (set->slots[at] & ~DROPPED) - 1), hash))
        at = (at + 1) & mask;
    return &set->slots[at];
}

static bool grow_set(const Block *block, HashSet *set, HashAt *hash_at)
{
    HashSet larger = {.size = set->size ? 4 * set->size : MIN_SLOTS, .count = set->count};
    larger.slots = calloc(larger.size, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < set->size; i++)
        if (set->slots[i])
            *find_slot(block, &larger, hash_at,
                       hash_at(block, (set->slots[i] & ~DROPPED) - 1)) = set->slots[i];
    free(set->slots);
    *set = larger;
    return true;
}

/* Add a hash with its number; `*is_new` is set if it was not in the set. */
static bool add_to_set(const Block *block, HashSet *set, HashAt *hash_at, const Hash *hash,
                       uint32_t number, bool *is_new)
{
    if (2 * set->count >= set->size && !grow_set(block, set, hash_at))
        return false;
    uint32_t *slot = find_slot(block, set, hash_at, hash);
    *is_new = !*slot;
    if (*is_new) {
        *slot = number + 1;
        set->count++;
    }
    return true;
}

bool has_pruned(const Block *block, const HashSet *pruned, const Hash *hash)
{
    uint32_t slot = *find_slot(block, pruned, digest_hash, hash);
    return slot && !(slot & DROPPED);
}

bool drop_pruned(const Block *block, HashSet *pruned, const Hash *hash)
{
    uint32_t *slot = find_slot(block, pruned, digest_hash, hash);
    if (!*slot || *slot & DROPPED)
        return false;
    *slot |= DROPPED;
    return true;
}

/* Append d1, d2 and data, without levels that only the update adds, and child hashes. */
static Status append_cell(Block *block, const Cell *cell, unsigned depth, const Hash *hash)
{
    Table *table = &block->decoder->tables[TABLE_state_cells];
    Row_state_cells *row = APPEND(block->decoder->tables, state_cells);
    unsigned size = 2 + cell_bytes(cell), refs = cell_ref_count(cell);
    unsigned mask = cell_mask(cell) & ((1u << depth) - 1);
    unsigned below = depth + cell_is_merkle(cell);
    if (!row || !heap_reserve(&table->heap, size + refs * HASH_BYTES))
        return NO_MEMORY;
    SET(row, hash, *hash);
    SET(row, mc_seqno, block->raw->mc_seqno);
    uint8_t *to = table->heap.data + table->heap.size;
    to[0] = (uint8_t)((cell->d1 & 0x1F) | mask << 5);
    to[1] = cell->d2;
    memcpy(to + 2, cell->data, cell_bytes(cell));
    for (unsigned i = 0; i < refs; i++)
        memcpy(to + size + i * HASH_BYTES, tree_hash(&block->tree, cell->refs[i], below),
               HASH_BYTES);
    SET(row, cell, (Span){table->heap.size, size});
    SET(row, refs, (Span){table->heap.size + size, refs * HASH_BYTES});
    table->heap.size += size + refs * HASH_BYTES;
    return DONE;
}

static Status keep_cell(Block *block, uint32_t index, unsigned depth, HashSet *pruned)
{
    Decoder *decoder = block->decoder;
    const Cell *cell = &block->tree.cells[index];
    uint32_t digest = cell_digest(cell, depth);
    const Hash *hash = &block->tree.hashes[digest];
    bool is_new;
    if (cell_kind(cell) == PRUNED && cell_mask(cell) >> depth)
        return add_to_set(block, pruned, digest_hash, hash, digest, &is_new) ? DONE : NO_MEMORY;
    uint32_t number = (uint32_t)decoder->tables[TABLE_state_cells].count;
    if (!add_to_set(block, &decoder->state_cells, row_hash, hash, number, &is_new))
        return NO_MEMORY;
    return is_new ? append_cell(block, cell, depth, hash) : DONE;
}

Status keep_cells(Block *block, const Heap *roots, unsigned depth, HashSet *pruned)
{
    Walk walk;
    Status status = DONE;
    walk_open(&walk, block);
    for (size_t at = 0; status == DONE && at < roots->size; at += sizeof(uint32_t)) {
        uint32_t root;
        memcpy(&root, roots->data + at, sizeof root);
        status = walk_push(&walk, root, depth) ? DONE : NO_MEMORY;
    }
    while (status == DONE) {
        uint32_t cell;
        unsigned at;
        status = walk_next(&walk, &cell, &at);
        if (status == NOT_MINE) {
            status = DONE;
            break;
        }
        if (status == DONE)
            status = keep_cell(block, cell, at, pruned);
    }
    heap_free(&walk.todo);
    return status;
}
