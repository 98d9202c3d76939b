/* Hashes and depths of cells at every level, and cells appended to a tree.
   Levels follow the node's DataCell, as ingest/cell/digest.py describes. */
#include "tree.h"

#define DEPTH_BYTES 2
#define CHUNK_BYTES 65536

struct Chunk {
    Chunk *next;
    size_t used;
    uint8_t bytes[CHUNK_BYTES];
};

/* Hashes that wait to be computed together. They belong to the cells from the one at hand up to
   `last`, so a child has its hashes if it stands behind `last`. */
typedef struct {
    Sha256Job jobs[SHA256_QUEUE];
    size_t count;
    uint32_t last;
} Queue;

static void run_queue(Queue *queue, const Sha256 *sha)
{
    sha256_run(sha, queue->jobs, queue->count);
    queue->count = 0;
}

/* Queue the hash of a cell at one level; return DONE, or NOT_MINE if the tree is too deep. */
static Status queue_level(Tree *tree, const Sha256 *sha, Queue *queue, uint32_t index,
                          unsigned level, unsigned deeper, uint32_t to)
{
    const Cell *cell = &tree->cells[index];
    unsigned refs = cell_ref_count(cell), depth = 0;
    if (queue->count == SHA256_QUEUE)
        run_queue(queue, sha);
    if (!queue->count)
        queue->last = index;
    Sha256Job *job = &queue->jobs[queue->count++];
    uint8_t *out = job->message;
    *out++ = (uint8_t)((cell->d1 & 0x1F) | (cell_mask(cell) & ((1u << level) - 1)) << 5);
    *out++ = cell->d2;
    if (to == cell->digest) {
        memcpy(out, cell->data, cell_bytes(cell));
        out += cell_bytes(cell);
    } else {
        memcpy(out, &tree->hashes[to - 1], HASH_BYTES);
        out += HASH_BYTES;
    }
    uint8_t *hashes = out + refs * DEPTH_BYTES;
    for (unsigned i = 0; i < refs; i++) {
        uint32_t kid = cell_digest(&tree->cells[cell->refs[i]], level + deeper);
        unsigned kid_depth = tree->depths[kid];
        store_be(out + i * DEPTH_BYTES, kid_depth, DEPTH_BYTES);
        memcpy(hashes + i * HASH_BYTES, &tree->hashes[kid], HASH_BYTES);
        if (kid_depth >= depth)
            depth = kid_depth + 1;
    }
    tree->depths[to] = (uint16_t)depth;
    job->size = (size_t)(hashes + refs * HASH_BYTES - job->message);
    job->to = &tree->hashes[to];
    return depth <= MAX_DEPTH ? DONE : NOT_MINE;
}

/* A pruned branch stores all its hashes and depths but the last, which is its own. */
static void queue_pruned(Tree *tree, const Sha256 *sha, Queue *queue, uint32_t index)
{
    const Cell *cell = &tree->cells[index];
    uint32_t to = cell->digest, top = cell_digest(cell, MAX_LEVEL);
    const uint8_t *depths = cell->data + 2 + (top - to) * HASH_BYTES;
    memcpy(&tree->hashes[to], cell->data + 2, (top - to) * HASH_BYTES);
    for (unsigned i = 0; i < top - to; i++)
        tree->depths[to + i] = (uint16_t)load_be(depths + i * DEPTH_BYTES, DEPTH_BYTES);
    tree->depths[top] = 0;
    if (queue->count == SHA256_QUEUE)
        run_queue(queue, sha);
    if (!queue->count)
        queue->last = index;
    Sha256Job *job = &queue->jobs[queue->count++];
    job->message[0] = cell->d1;
    job->message[1] = cell->d2;
    memcpy(job->message + 2, cell->data, cell_bytes(cell));
    job->size = 2 + cell_bytes(cell);
    job->to = &tree->hashes[top];
}

/* A Merkle cell names the hashes and depths that its children have at level 0. */
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

/* Queue the hashes of one cell, whose children have theirs or are queued. */
static Status queue_cell(Tree *tree, const Sha256 *sha, Queue *queue, uint32_t index)
{
    const Cell *cell = &tree->cells[index];
    if (cell_kind(cell) == PRUNED) {
        queue_pruned(tree, sha, queue, index);
        return DONE;
    }
    unsigned mask = cell_mask(cell), deeper = 0;
    for (unsigned i = 0; queue->count && i < cell_ref_count(cell); i++)
        if (cell->refs[i] <= queue->last)
            run_queue(queue, sha);
    if (cell_is_merkle(cell)) {
        deeper = 1;
        if (!merkle_agrees(tree, cell))
            return NOT_MINE;
    }
    uint32_t to = cell->digest;
    for (unsigned level = 0; level <= MAX_LEVEL; level++) {
        if (level && !(mask >> (level - 1) & 1))
            continue;
        if (level)
            run_queue(queue, sha); /* each further hash covers the one before it */
        Status status = queue_level(tree, sha, queue, index, level, deeper, to++);
        if (status != DONE)
            return status;
    }
    return DONE;
}

Status tree_digest(Tree *tree, const Sha256 *sha)
{
    Queue queue;
    Status status = DONE;
    queue.count = 0;
    tree->hash_capacity = tree->hash_count;
    tree->hashes = malloc(tree->hash_capacity * sizeof *tree->hashes);
    tree->depths = malloc(tree->hash_capacity * sizeof *tree->depths);
    if (!tree->hashes || !tree->depths)
        return NO_MEMORY;
    for (uint32_t index = tree->count; status == DONE && index-- > 0;)
        status = queue_cell(tree, sha, &queue, index);
    run_queue(&queue, sha);
    return status;
}

/* Double the room for cells and hashes, when there is none for one more cell. */
static Status grow(Tree *tree)
{
    if (tree->count == tree->capacity) {
        if (tree->capacity > UINT32_MAX / 16)
            return NOT_MINE;
        uint32_t capacity = tree->capacity * 2;
        Cell *cells = realloc(tree->cells, capacity * sizeof *cells);
        if (!cells)
            return NO_MEMORY;
        tree->cells = cells;
        tree->capacity = capacity;
    }
    if (tree->hash_capacity - tree->hash_count <= MAX_LEVEL) {
        uint32_t capacity = tree->hash_capacity * 2 + MAX_LEVEL + 1;
        Hash *hashes = realloc(tree->hashes, capacity * sizeof *hashes);
        if (!hashes)
            return NO_MEMORY;
        tree->hashes = hashes;
        uint16_t *depths = realloc(tree->depths, capacity * sizeof *depths);
        if (!depths)
            return NO_MEMORY;
        tree->depths = depths;
        tree->hash_capacity = capacity;
    }
    return DONE;
}

/* Keep bytes at a place that does not move. */
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
    queue.count = 0;
    status = queue_cell(tree, sha, &queue, tree->count);
    run_queue(&queue, sha);
    tree->hash_count += (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1) + 1;
    *to = tree->count++;
    return status;
}

void tree_free(Tree *tree)
{
    while (tree->chunks) {
        Chunk *next = tree->chunks->next;
        free(tree->chunks);
        tree->chunks = next;
    }
    free(tree->cells);
    free(tree->hashes);
    free(tree->depths);
    *tree = (Tree){0};
}
