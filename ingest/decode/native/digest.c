/* Computes hashes and depths of cells at every level, also of cells appended to a tree.
   Levels follow the node's DataCell: see ingest/decode/cell/digest.py. */
#include "tree.h"

#define DEPTH_BYTES 2
#define CHUNK_BYTES 65536
#define AHEAD 6 /* cells */

struct Chunk {
    Chunk *next;
    size_t used;
    uint8_t bytes[CHUNK_BYTES];
};

/* Messages with equal numbers of blocks, which are hashed together: two streams of SHA instructions
   take little longer than one, and wide registers hold eight messages. A queued message must not
   depend on another queued hash. */
typedef struct {
    const Sha256 *sha;
    Sha256Job jobs[SHA256_JOB_BLOCKS + 1][SHA256_LANES];
    size_t waiting[SHA256_JOB_BLOCKS + 1];
} Queue;

static void open_queue(Queue *queue, const Sha256 *sha)
{
    queue->sha = sha;
    memset(queue->waiting, 0, sizeof queue->waiting);
}

/* Start a message; it is queued until enough others can be hashed with it. */
static Sha256Job *begin_job(Queue *queue, size_t size, Hash *to)
{
    size_t blocks = sha256_blocks(size);
    Sha256Job *job = &queue->jobs[blocks][queue->waiting[blocks]];
    job->size = size;
    job->to = to;
    return job;
}

static void run_jobs(Queue *queue, size_t blocks)
{
    sha256_jobs(queue->sha, queue->jobs[blocks], queue->waiting[blocks], blocks);
    queue->waiting[blocks] = 0;
}

static void end_job(Queue *queue, size_t size)
{
    size_t blocks = sha256_blocks(size);
    if (++queue->waiting[blocks] == queue->sha->lanes)
        run_jobs(queue, blocks);
}

/* Compute all queued hashes. */
static void flush(Queue *queue)
{
    for (size_t blocks = 1; blocks <= SHA256_JOB_BLOCKS; blocks++)
        if (queue->waiting[blocks])
            run_jobs(queue, blocks);
}

/* Return the lowest level at which a cell has its hash number `number`. */
static unsigned level_of(unsigned mask, unsigned number)
{
    unsigned level = 0;
    while (number)
        number -= mask >> level++ & 1;
    return level;
}

/* Queue hash number `number` of a cell that is not pruned; the hashes of its children, and its
   previous hash, are known. NOT_MINE if the tree is too deep. */
static Status queue_hash(Tree *tree, Queue *queue, uint32_t index, unsigned number)
{
    const Cell *cell = &tree->cells[index];
    unsigned refs = cell_ref_count(cell), mask = cell_mask(cell), depth = 0;
    unsigned level = level_of(mask, number), deeper = level + cell_is_merkle(cell);
    unsigned data_bytes = number ? HASH_BYTES : cell_bytes(cell);
    uint32_t to = cell->digest + number;
    size_t size = 2 + data_bytes + refs * (DEPTH_BYTES + HASH_BYTES);
    Sha256Job *job = begin_job(queue, size, &tree->hashes[to]);
    uint8_t *out = job->message;
    out[0] = (uint8_t)((cell->d1 & 0x1F) | (mask & ((1u << level) - 1)) << 5);
    out[1] = cell->d2;
    copy_short(out + 2, number ? tree->hashes[to - 1].bytes : cell->data, data_bytes);
    uint8_t *depths = out + 2 + data_bytes, *hashes = depths + refs * DEPTH_BYTES;
    for (unsigned i = 0; i < refs; i++) {
        uint32_t kid = cell_digest(&tree->cells[cell->refs[i]], deeper);
        unsigned kid_depth = tree->depths[kid];
        depths[2 * i] = (uint8_t)(kid_depth >> 8);
        depths[2 * i + 1] = (uint8_t)kid_depth;
        memcpy(hashes + i * HASH_BYTES, &tree->hashes[kid], HASH_BYTES);
        if (kid_depth >= depth)
            depth = kid_depth + 1;
    }
    tree->depths[to] = (uint16_t)depth;
    end_job(queue, size);
    return depth <= MAX_DEPTH ? DONE : NOT_MINE;
}

/* A pruned branch stores all its hashes and depths but the last one, its own. */
static void queue_pruned(Tree *tree, Queue *queue, uint32_t index)
{
    const Cell *cell = &tree->cells[index];
    uint32_t to = cell->digest, top = cell_digest(cell, MAX_LEVEL);
    const uint8_t *depths = cell->data + 2 + (top - to) * HASH_BYTES;
    memcpy(&tree->hashes[to], cell->data + 2, (top - to) * HASH_BYTES);
    for (unsigned i = 0; i < top - to; i++)
        tree->depths[to + i] = (uint16_t)load_be(depths + i * DEPTH_BYTES, DEPTH_BYTES);
    tree->depths[top] = 0;
    size_t size = 2 + cell_bytes(cell);
    Sha256Job *job = begin_job(queue, size, &tree->hashes[top]);
    job->message[0] = cell->d1;
    job->message[1] = cell->d2;
    copy_short(job->message + 2, cell->data, cell_bytes(cell));
    end_job(queue, size);
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

/* Prefetch the data for a cell's hash a few cells ahead: cells of one depth are far apart. */
static inline void prefetch_cell(const Tree *tree, uint32_t index)
{
    const Cell *cell = &tree->cells[index];
    __builtin_prefetch(cell->data);
    for (unsigned i = 0; i < cell_ref_count(cell); i++)
        __builtin_prefetch(&tree->hashes[tree->cells[cell->refs[i]].digest]);
}

/* Hash cells that are not descendants of each other; their children are hashed already. */
static Status digest_cells(Tree *tree, Queue *queue, const uint32_t *cells, size_t count)
{
    unsigned most = 1;
    for (unsigned number = 0; number < most; number++) {
        for (size_t i = 0; i < count; i++) {
            if (i + 2 * AHEAD < count)
                __builtin_prefetch(&tree->cells[cells[i + 2 * AHEAD]]);
            if (i + AHEAD < count)
                prefetch_cell(tree, cells[i + AHEAD]);
            const Cell *cell = &tree->cells[cells[i]];
            unsigned hashes = cell_hash_count(cell);
            if (cell_kind(cell) == PRUNED) {
                if (!number)
                    queue_pruned(tree, queue, cells[i]);
                continue;
            }
            if (!number && cell_is_merkle(cell) && !merkle_agrees(tree, cell))
                return NOT_MINE;
            if (number < hashes && queue_hash(tree, queue, cells[i], number) != DONE)
                return NOT_MINE;
            if (hashes > most)
                most = hashes;
        }
        flush(queue);
    }
    return DONE;
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

/* Assign a cell the index of its hashes, if it has none, and append it to those found; `counts` has
   the number of cells of each depth, shifted by one. */
static inline void find_cell(Tree *tree, uint32_t index, uint32_t *found, uint32_t *count,
                             uint32_t *counts)
{
    Cell *cell = &tree->cells[index];
    if (cell->digest)
        return;
    cell->digest = tree->hash_count;
    tree->hash_count += cell_hash_count(cell);
    counts[tree->heights[index] + 1]++;
    found[(*count)++] = index;
}

Status tree_digest(Tree *tree, const Sha256 *sha, const uint32_t *roots, size_t root_count)
{
    uint32_t starts[MAX_DEPTH + 2] = {0}, count = 0, first = 0, old = tree->hash_count;
    uint32_t *found = heap_renew(&tree->memory.found, tree->count, sizeof *found);
    uint32_t *order = heap_renew(&tree->memory.order, tree->count, sizeof *order);
    Queue queue;
    if (!found || !order)
        return NO_MEMORY;
    for (size_t i = 0; i < root_count; i++)
        find_cell(tree, roots[i], found, &count, starts);
    for (uint32_t i = 0; i < count; i++)
        for (unsigned ref = 0; ref < cell_ref_count(&tree->cells[found[i]]); ref++)
            find_cell(tree, tree->cells[found[i]].refs[ref], found, &count, starts);
    if (!grow_hashes(tree, old))
        return NO_MEMORY;
    /* Cells of one depth do not depend on each other. */
    for (unsigned depth = 0; depth <= MAX_DEPTH; depth++)
        starts[depth + 1] += starts[depth];
    for (uint32_t i = 0; i < count; i++)
        order[starts[tree->heights[found[i]]]++] = found[i];
    open_queue(&queue, sha);
    Status status = DONE;
    /* Sorting has moved every start to the end of its depth. */
    for (unsigned depth = 0; status == DONE && first < count; first = starts[depth++])
        status = digest_cells(tree, &queue, order + first, starts[depth] - first);
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

Status tree_append(Tree *tree, const Sha256 *sha, const uint8_t *data, unsigned bits,
                   const uint32_t *refs, unsigned ref_count, uint32_t *to)
{
    uint8_t head[2 + 128];
    Queue queue;
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
    open_queue(&queue, sha);
    *to = tree->count;
    status = digest_cells(tree, &queue, to, 1);
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
    heap_free(&tree->memory.parents);
    heap_free(&tree->memory.stored);
    heap_free(&tree->memory.found);
    heap_free(&tree->memory.order);
}
