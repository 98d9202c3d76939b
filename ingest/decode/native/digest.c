/* Computes hashes and depths of cells at every level, also of cells appended to a tree.
   Levels follow the node's DataCell: see ingest/decode/cell/tree.py. */
#include "tree.h"

#define DEPTH_BYTES 2
#define CHUNK_BYTES 65536
/* Descriptors, data, and depths and hashes of the children. */
#define MAX_MESSAGE (2 + (MAX_BITS + 7) / 8 + MAX_REFS * (DEPTH_BYTES + HASH_BYTES))

struct Chunk {
    Chunk *next;
    size_t used;
    uint8_t bytes[CHUNK_BYTES];
};

/* Return the lowest level at which a cell has its hash number `number`. */
static unsigned level_of(unsigned mask, unsigned number)
{
    unsigned level = 0;
    while (number)
        number -= mask >> level++ & 1;
    return level;
}

/* Compute hash number `number` of a cell that is not pruned; the hashes of its children, and its
   previous hash, are known. NOT_MINE if the tree is too deep. */
static Status digest_level(Tree *tree, const Cell *cell, unsigned number)
{
    unsigned refs = cell_ref_count(cell), mask = cell_mask(cell), depth = 0;
    unsigned level = level_of(mask, number), deeper = level + cell_is_merkle(cell);
    unsigned data_bytes = number ? HASH_BYTES : cell_bytes(cell);
    uint32_t to = cell->digest + number;
    uint8_t message[MAX_MESSAGE];
    message[0] = (uint8_t)((cell->d1 & 0x1F) | (mask & ((1u << level) - 1)) << 5);
    message[1] = cell->d2;
    copy_short(message + 2, number ? tree->hashes[to - 1].bytes : cell->data, data_bytes);
    uint8_t *depths = message + 2 + data_bytes, *hashes = depths + refs * DEPTH_BYTES;
    for (unsigned i = 0; i < refs; i++) {
        uint32_t kid = cell_digest(&tree->cells[cell->refs[i]], deeper);
        unsigned kid_depth = tree->depths[kid];
        store_be(depths + i * DEPTH_BYTES, kid_depth, DEPTH_BYTES);
        memcpy(hashes + i * HASH_BYTES, &tree->hashes[kid], HASH_BYTES);
        if (kid_depth >= depth)
            depth = kid_depth + 1;
    }
    tree->depths[to] = (uint16_t)depth;
    sha256(message, 2 + data_bytes + refs * (DEPTH_BYTES + HASH_BYTES), &tree->hashes[to]);
    return depth <= MAX_DEPTH ? DONE : NOT_MINE;
}

/* A pruned branch stores all its hashes and depths but the last one, its own. */
static void digest_pruned(Tree *tree, const Cell *cell)
{
    uint32_t to = cell->digest, top = cell_digest(cell, MAX_LEVEL);
    const uint8_t *depths = cell->data + 2 + (top - to) * HASH_BYTES;
    uint8_t message[MAX_MESSAGE] = {cell->d1, cell->d2};
    memcpy(&tree->hashes[to], cell->data + 2, (top - to) * HASH_BYTES);
    for (unsigned i = 0; i < top - to; i++)
        tree->depths[to + i] = (uint16_t)load_be(depths + i * DEPTH_BYTES, DEPTH_BYTES);
    tree->depths[top] = 0;
    copy_short(message + 2, cell->data, cell_bytes(cell));
    sha256(message, 2 + cell_bytes(cell), &tree->hashes[top]);
}

/* A Merkle cell stores the hashes and depths of its children at level 0. */
static bool merkle_agrees(const Tree *tree, const Cell *cell)
{
    unsigned refs = cell_ref_count(cell);
    const uint8_t *depths = cell->data + 1 + refs * HASH_BYTES;
    for (unsigned i = 0; i < refs; i++) {
        uint32_t kid = tree->cells[cell->refs[i]].digest;
        if (memcmp(cell->data + 1 + i * HASH_BYTES, &tree->hashes[kid], HASH_BYTES) != 0 ||
            load_be(depths + i * DEPTH_BYTES, DEPTH_BYTES) != tree->depths[kid])
            return false;
    }
    return true;
}

/* Hash a cell whose children are hashed already. */
static Status digest_cell(Tree *tree, const Cell *cell)
{
    if (cell_kind(cell) == PRUNED) {
        digest_pruned(tree, cell);
        return DONE;
    }
    if (cell_is_merkle(cell) && !merkle_agrees(tree, cell))
        return NOT_MINE;
    Status status = DONE;
    for (unsigned number = 0; status == DONE && number < cell_hash_count(cell); number++)
        status = digest_level(tree, cell, number);
    return status;
}

/* Allocate the counted hashes, of which `old` exist. */
static bool grow_hashes(Tree *tree, uint32_t old)
{
    size_t more = tree->hash_count - old;
    tree->memory.hashes.size = old * sizeof *tree->hashes;
    tree->memory.depths.size = old * sizeof *tree->depths;
    if (!heap_reserve(&tree->memory.hashes, more * sizeof *tree->hashes) ||
        !heap_reserve(&tree->memory.depths, more * sizeof *tree->depths))
        return false;
    tree->hashes = (Hash *)tree->memory.hashes.data;
    tree->depths = (uint16_t *)tree->memory.depths.data;
    return true;
}

/* Assign a cell the index of its hashes, if it has none, and append it to those found. */
static inline void find_cell(Tree *tree, uint32_t index, uint32_t *found, uint32_t *count)
{
    Cell *cell = &tree->cells[index];
    if (cell->digest)
        return;
    cell->digest = tree->hash_count;
    tree->hash_count += cell_hash_count(cell);
    found[(*count)++] = index;
}

Status tree_digest(Tree *tree, const uint32_t *roots, size_t root_count)
{
    uint32_t count = 0, old = tree->hash_count;
    uint32_t *found = heap_renew(&tree->memory.found, tree->count, sizeof *found);
    if (!found)
        return NO_MEMORY;
    for (size_t i = 0; i < root_count; i++)
        find_cell(tree, roots[i], found, &count);
    for (uint32_t i = 0; i < count; i++)
        for (unsigned ref = 0; ref < cell_ref_count(&tree->cells[found[i]]); ref++)
            find_cell(tree, tree->cells[found[i]].refs[ref], found, &count);
    if (!grow_hashes(tree, old))
        return NO_MEMORY;
    Status status = DONE;
    /* Children come after their parents. */
    for (uint32_t index = count ? tree->count : 0; status == DONE && index-- > 0;)
        if (tree->cells[index].digest >= old)
            status = digest_cell(tree, &tree->cells[index]);
    return status;
}

/* Allocate one more cell and its hashes. */
static Status grow(Tree *tree)
{
    if (tree->count > UINT32_MAX / 16)
        return NOT_MINE;
    tree->memory.cells.size = tree->count * sizeof *tree->cells;
    tree->memory.hashes.size = tree->hash_count * sizeof *tree->hashes;
    tree->memory.depths.size = tree->hash_count * sizeof *tree->depths;
    if (!heap_reserve(&tree->memory.cells, sizeof *tree->cells) ||
        !heap_reserve(&tree->memory.hashes, (MAX_LEVEL + 1) * sizeof *tree->hashes) ||
        !heap_reserve(&tree->memory.depths, (MAX_LEVEL + 1) * sizeof *tree->depths))
        return NO_MEMORY;
    tree->cells = (Cell *)tree->memory.cells.data;
    tree->hashes = (Hash *)tree->memory.hashes.data;
    tree->depths = (uint16_t *)tree->memory.depths.data;
    return DONE;
}

/* Copy bytes to an address that does not change. */
static const uint8_t *keep_bytes(Tree *tree, const uint8_t *bytes, size_t size)
{
    Chunk *chunk = tree->chunks;
    if (!chunk || CHUNK_BYTES - chunk->used < size) {
        chunk = malloc(sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = tree->chunks;
        chunk->used = 0;
        tree->chunks = chunk;
    }
    uint8_t *to = chunk->bytes + chunk->used;
    chunk->used += size;
    memcpy(to, bytes, size);
    return to;
}

size_t pack_head(uint8_t *to, uint8_t d1, unsigned bits)
{
    unsigned rest = bits & 7, bytes = (bits + 7) / 8;
    to[0] = d1;
    to[1] = (uint8_t)(bits / 8 + bytes);
    if (rest) {
        uint8_t *last = &to[2 + bits / 8];
        *last = (uint8_t)((*last & (0xFF00 >> rest)) | 0x80 >> rest);
    }
    return 2 + bytes;
}

Status tree_append(Tree *tree, const uint8_t *data, unsigned bits, const uint32_t *refs,
                   unsigned ref_count, uint32_t *to)
{
    uint8_t head[2 + 128];
    unsigned mask = 0, weight = 1;
    Status status = grow(tree);
    if (status != DONE)
        return status;
    memcpy(head + 2, data, (bits + 7) / 8);
    Cell *cell = &tree->cells[tree->count];
    *cell = (Cell){.digest = tree->hash_count, .bits = (uint16_t)bits};
    for (unsigned i = 0; i < ref_count; i++) {
        cell->refs[i] = refs[i];
        mask |= cell_mask(&tree->cells[refs[i]]);
        weight += tree->cells[refs[i]].weight;
    }
    size_t size = pack_head(head, (uint8_t)(ref_count | mask << 5), bits);
    cell->d1 = head[0];
    cell->d2 = head[1];
    cell->weight = (uint8_t)(weight < 255 ? weight : 255);
    cell->data = keep_bytes(tree, head + 2, size - 2);
    if (!cell->data)
        return NO_MEMORY;
    *to = tree->count;
    status = digest_cell(tree, cell);
    tree->hash_count += cell_hash_count(cell);
    tree->count++;
    return status;
}

/* Free the bytes of appended cells. */
static void drop_chunks(Tree *tree)
{
    while (tree->chunks) {
        Chunk *next = tree->chunks->next;
        free(tree->chunks);
        tree->chunks = next;
    }
}

void tree_reset(Tree *tree)
{
    drop_chunks(tree);
    tree->count = tree->hash_count = 0;
}

void tree_free(Tree *tree)
{
    drop_chunks(tree);
    heap_free(&tree->memory.cells);
    heap_free(&tree->memory.hashes);
    heap_free(&tree->memory.depths);
    heap_free(&tree->memory.heights);
    heap_free(&tree->memory.stored);
    heap_free(&tree->memory.found);
}
