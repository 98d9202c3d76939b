/* Parses bags of cells in one pass. TL-B: serialized_boc, serialized_boc_idx and _idx_crc32c.
   The checks are those of ingest/decode/cell/envelope.py, boc.py, tree.py and exotic.py. */
#include "tree.h"

#define FIXED_BYTES 6
#define INDEX_FLAG 0x80
#define CRC_FLAG 0x40
#define CACHE_FLAG 0x20
#define UNKNOWN_FLAGS 0x18
#define CRC_BYTES 4
#define HASHES_BIT 0x10
#define HASH_AND_DEPTH_BYTES 34

typedef struct {
    uint64_t cell_count;
    unsigned ref_bytes;
    size_t first, end; /* where the cells begin and end */
    uint64_t root;
    bool has_crc;
} Envelope;

static unsigned count_bits(unsigned mask)
{
    return (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1);
}

static Status read_sizes(const uint8_t *data, size_t size, unsigned flags, bool generic,
                         Envelope *to)
{
    unsigned ref_bytes = flags & 7, offset_bytes = data[5];
    size_t sizes_end = FIXED_BYTES + 3 * (size_t)ref_bytes + offset_bytes;
    if (size < sizes_end)
        return NOT_MINE;
    uint64_t cells = load_be(data + FIXED_BYTES, ref_bytes);
    uint64_t roots = load_be(data + FIXED_BYTES + ref_bytes, ref_bytes);
    uint64_t absent = load_be(data + FIXED_BYTES + 2 * ref_bytes, ref_bytes);
    uint64_t cell_bytes = load_be(data + sizes_end - offset_bytes, offset_bytes);
    /* A block has one root; the Python reference reads bags with more. */
    if (absent || roots != 1 || !cells)
        return NOT_MINE;
    uint64_t first = sizes_end + (generic ? ref_bytes : 0);
    first += flags & INDEX_FLAG ? cells * offset_bytes : 0;
    uint64_t around = first + (flags & CRC_FLAG ? CRC_BYTES : 0);
    if (around > size || cell_bytes != size - around)
        return NOT_MINE;
    /* A cell has two descriptor bytes, and all but the root are referred to at least once. */
    if (cell_bytes < cells * (2 + ref_bytes) - ref_bytes)
        return NOT_MINE;
    to->cell_count = cells;
    to->ref_bytes = ref_bytes;
    to->first = first;
    to->end = first + cell_bytes;
    to->has_crc = flags & CRC_FLAG;
    to->root = generic ? load_be(data + sizes_end, ref_bytes) : 0;
    return to->root < cells ? DONE : NOT_MINE;
}

static Status read_envelope(const uint8_t *data, size_t size, Envelope *to)
{
    if (size < FIXED_BYTES)
        return NOT_MINE;
    unsigned flags = data[4];
    uint64_t magic = load_be(data, 4);
    bool generic = magic == 0xb5ee9c72;
    if (!generic) {
        if (flags & ~7u)
            return NOT_MINE;
        if (magic == 0x68ff65f3)
            flags |= INDEX_FLAG;
        else if (magic == 0xacc3a728)
            flags |= INDEX_FLAG | CRC_FLAG;
        else
            return NOT_MINE;
    }
    unsigned ref_bytes = flags & 7, offset_bytes = data[5];
    if (flags & UNKNOWN_FLAGS || (flags & CACHE_FLAG && !(flags & INDEX_FLAG)))
        return NOT_MINE;
    if (!ref_bytes || ref_bytes > 4 || !offset_bytes || offset_bytes > 8)
        return NOT_MINE;
    return read_sizes(data, size, flags, generic, to);
}

unsigned measure_bits(unsigned d2, unsigned last)
{
    unsigned bits = d2 << 2;
    if (!(d2 & 1))
        return bits;
    bits = (d2 + 1) << 2;
    while (!(last & 1)) {
        last >>= 1;
        bits--;
    }
    return bits - 1;
}

/* Parse the cells; `stored` gets the positions of stored hashes. */
static Status read_cells(Tree *tree, const uint8_t *data, const Envelope *envelope)
{
    Heap *stored = &tree->memory.stored;
    size_t at = envelope->first, limit = envelope->end;
    for (uint32_t index = 0; index < envelope->cell_count; index++) {
        if (limit - at < 2)
            return NOT_MINE;
        Cell *cell = &tree->cells[index];
        unsigned d1 = data[at], refs = d1 & 7;
        size_t start = at + 2;
        if (refs > MAX_REFS)
            return NOT_MINE;
        if (d1 & HASHES_BIT) {
            if (!heap_append(stored, &index, sizeof index))
                return NO_MEMORY;
            start += (count_bits(d1 >> 5) + 1) * HASH_AND_DEPTH_BYTES;
        }
        cell->d1 = (uint8_t)(d1 & ~HASHES_BIT);
        cell->d2 = data[at + 1];
        size_t end = start + cell_bytes(cell);
        at = end + refs * envelope->ref_bytes;
        if (at > limit || (cell->d2 & 1 && !(data[end - 1] & 0x7F)))
            return NOT_MINE;
        cell->data = data + start;
        cell->bits = (uint16_t)measure_bits(cell->d2, data[end - 1]);
        cell->digest = 0;
        for (unsigned i = 0; i < refs; i++) {
            uint64_t ref = load_be(data + end + i * envelope->ref_bytes, envelope->ref_bytes);
            if (ref <= index || ref >= envelope->cell_count)
                return NOT_MINE;
            cell->refs[i] = (uint32_t)ref;
        }
    }
    tree->count = (uint32_t)envelope->cell_count;
    return at == limit ? DONE : NOT_MINE;
}

/* Return the level mask that an exotic cell must have, or 8 if its shape is wrong. */
static unsigned measure_exotic(const Cell *cell, unsigned below)
{
    static const struct {
        uint8_t bytes, refs;
    } shapes[] = {[LIBRARY] = {33, 0}, [MERKLE_PROOF] = {35, 1}, [MERKLE_UPDATE] = {69, 2}};
    unsigned size = cell_bytes(cell), refs = cell_ref_count(cell);
    if (cell->d2 & 1 || !size)
        return 8;
    unsigned kind = cell->data[0];
    if (kind == PRUNED) {
        unsigned mask = size > 1 ? cell->data[1] : 0;
        bool fits = mask && mask <= 7 && !refs && size == 2 + count_bits(mask) * 34;
        return fits ? mask : 8;
    }
    if (kind < LIBRARY || kind > MERKLE_UPDATE)
        return 8;
    return size == shapes[kind].bytes && refs == shapes[kind].refs ? below >> 1 : 8;
}

/* From the last cell to the first: check level, depth and kind, weigh subtrees. */
static Status measure_cells(Tree *tree)
{
    uint16_t *heights = (uint16_t *)tree->memory.heights.data;
    for (uint32_t index = tree->count; index-- > 0;) {
        Cell *cell = &tree->cells[index];
        unsigned mask = 0, weight = 1, height = 0;
        for (unsigned i = 0; i < cell_ref_count(cell); i++) {
            const Cell *kid = &tree->cells[cell->refs[i]];
            mask |= cell_mask(kid);
            weight += kid->weight;
            if (heights[cell->refs[i]] >= height)
                height = heights[cell->refs[i]] + 1u;
        }
        if (cell->d1 & EXOTIC_BIT)
            mask = measure_exotic(cell, mask);
        if (cell_mask(cell) != mask || height > MAX_DEPTH)
            return NOT_MINE;
        cell->weight = (uint8_t)(weight < 255 ? weight : 255);
        heights[index] = (uint16_t)height;
    }
    return DONE;
}

/* Compare stored hashes and depths with the computed ones. */
static Status check_stored(const Tree *tree)
{
    const Heap *stored = &tree->memory.stored;
    for (size_t at = 0; at < stored->size; at += sizeof(uint32_t)) {
        uint32_t index;
        memcpy(&index, stored->data + at, sizeof index);
        const Cell *cell = &tree->cells[index];
        unsigned count = count_bits(cell_mask(cell)) + 1;
        const uint8_t *said = cell->data - count * HASH_AND_DEPTH_BYTES;
        if (memcmp(said, &tree->hashes[cell->digest], count * HASH_BYTES) != 0)
            return NOT_MINE;
        for (unsigned i = 0; i < count; i++)
            if (load_be(said + count * HASH_BYTES + 2 * i, 2) != tree->depths[cell->digest + i])
                return NOT_MINE;
    }
    return DONE;
}

/* Clear the tree, and allocate `count` cells. */
static Status make_room(Tree *tree, uint32_t count)
{
    tree->cells = heap_renew(&tree->memory.cells, count, sizeof *tree->cells);
    tree->heights = heap_renew(&tree->memory.heights, count, sizeof *tree->heights);
    tree->hash_count = MAX_LEVEL + 1;
    tree->is_distinct = false;
    tree->memory.stored.size = 0;
    tree->hashes = heap_renew(&tree->memory.hashes, tree->hash_count, sizeof *tree->hashes);
    tree->depths = heap_renew(&tree->memory.depths, tree->hash_count, sizeof *tree->depths);
    if (!tree->cells || !tree->heights || !tree->hashes || !tree->depths)
        return NO_MEMORY;
    memset(tree->hashes, 0, tree->hash_count * sizeof *tree->hashes);
    memset(tree->depths, 0, tree->hash_count * sizeof *tree->depths);
    return DONE;
}

Status tree_parse(Tree *tree, const uint8_t *data, size_t size)
{
    Envelope envelope;
    Status status = read_envelope(data, size, &envelope);
    /* Indices of hashes, at most four a cell, stay below 2^31: see statecell.c. */
    if (status != DONE || envelope.cell_count > UINT32_MAX / 16)
        return NOT_MINE;
    status = make_room(tree, (uint32_t)envelope.cell_count);
    if (status != DONE)
        return status;
    tree->root = (uint32_t)envelope.root;
    status = read_cells(tree, data, &envelope);
    return status == DONE ? measure_cells(tree) : status;
}

/* Process half bytes; the polynomial is 0x82f63b78, reflected. */
uint32_t crc32c(const uint8_t *data, size_t size)
{
    static const uint32_t rest[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    uint32_t crc = ~0u;
    for (size_t at = 0; at < size; at++) {
        crc ^= data[at];
        crc = crc >> 4 ^ rest[crc & 15];
        crc = crc >> 4 ^ rest[crc & 15];
    }
    return ~crc;
}

bool boc_has_right_crc(const uint8_t *data, size_t size)
{
    Envelope envelope;
    if (read_envelope(data, size, &envelope) != DONE)
        return false;
    if (!envelope.has_crc)
        return true;
    const uint8_t *stored = data + envelope.end;
    uint32_t crc = stored[0] | (uint32_t)stored[1] << 8 | (uint32_t)stored[2] << 16 |
                   (uint32_t)stored[3] << 24;
    return crc == crc32c(data, envelope.end);
}

Status tree_take(Tree *tree, const Cell *cells, uint32_t count)
{
    Status status = make_room(tree, count);
    if (status != DONE)
        return status;
    memcpy(tree->cells, cells, count * sizeof *cells);
    tree->count = count;
    tree->root = 0;
    return measure_cells(tree);
}

Status tree_digest_whole(Tree *tree)
{
    Heap others = {0}; /* cells that the root does not reach */
    Status status = tree_digest(tree, &tree->root, 1);
    for (uint32_t cell = 0; status == DONE && cell < tree->count; cell++)
        if (!tree->cells[cell].digest && !heap_append(&others, &cell, sizeof cell))
            status = NO_MEMORY;
    if (status == DONE && others.size)
        status =
            tree_digest(tree, (const uint32_t *)others.data, others.size / sizeof(uint32_t));
    heap_free(&others);
    return status == DONE ? check_stored(tree) : status;
}
