/* Orders the cells of a bag as the node does (BagOfCells::reorder_cells): see
   ingest/decode/cell/writer.py. Small trees without duplicates have a short cut. */
#include "writer.h"

#include "order.h"

#define MAGIC 0xb5ee9c72
#define MAX_HEAD_BYTES 32

/* Below a cell of weight 48 no cell is special: see ingest/decode/cell/writer.py. */
#define LIGHT 48

static unsigned count_bytes(uint64_t value)
{
    unsigned bytes = 0;
    for (; value; value >>= 8)
        bytes++;
    return bytes;
}

/* Write the header of a bag: TL-B serialized_boc, one root, which is the first cell. */
static uint8_t *write_head(uint8_t *to, uint64_t count, unsigned width, uint64_t size)
{
    unsigned size_width = count_bytes(size);
    store_be(to, MAGIC, 4);
    to[4] = (uint8_t)width;
    to[5] = (uint8_t)size_width;
    to += 6;
    store_be(to, count, width);
    store_be(to + width, 1, width);
    store_be(to + 2 * width, 0, width);
    store_be(to + 3 * width, size, size_width);
    to += 3 * width + size_width;
    store_be(to, 0, width);
    return to + width;
}

static uint8_t *write_cell(uint8_t *to, const Cell *cell)
{
    to[0] = cell->d1;
    to[1] = cell->d2;
    copy_short(to + 2, cell->data, cell_bytes(cell));
    return to + 2 + cell_bytes(cell);
}

Status write_single(const uint8_t *cell, size_t size, Heap *to)
{
    if (!heap_reserve(to, MAX_HEAD_BYTES + size))
        return NO_MEMORY;
    uint8_t *start = to->data + to->size;
    uint8_t *out = write_head(start, 1, 1, size);
    copy_short(out, cell, size);
    to->size += (size_t)(out - start) + size;
    return DONE;
}

Status writer_open(Writer *writer, Tree *tree)
{
    uint32_t size = 256;
    while (size < 2 * tree->count)
        size *= 2;
    uint32_t *tags = heap_renew(&writer->tags, size, sizeof *tags);
    if (!tags)
        return NO_MEMORY;
    memset(tags, 0, size * sizeof *tags);
    tree->is_distinct = false;
    for (uint32_t cell = 0; cell < tree->count; cell++) {
        if (!tree->cells[cell].digest)
            continue;
        uint64_t mixed = hash_mix(tree_hash(tree, cell, MAX_LEVEL), writer->seed);
        uint32_t at = (uint32_t)mixed & (size - 1), tag;
        memcpy(&tag, tree_hash(tree, cell, MAX_LEVEL)->bytes + sizeof mixed, sizeof tag);
        tag |= 1;
        for (; tags[at]; at = (at + 1) & (size - 1))
            if (tags[at] == tag)
                return DONE;
        tags[at] = tag;
    }
    tree->is_distinct = true;
    return DONE;
}

uint32_t *writer_stamps(Writer *writer, const Tree *tree, uint32_t count)
{
    size_t size = tree->count * sizeof(uint32_t), old = writer->stamps.size;
    if (old < size) {
        if (!heap_reserve(&writer->stamps, size - old))
            return NULL;
        memset(writer->stamps.data + old, 0, size - old);
        writer->stamps.size = size;
    }
    if (!writer->next_stamp || count > UINT32_MAX - writer->next_stamp) {
        memset(writer->stamps.data, 0, writer->stamps.size);
        writer->next_stamp = 1;
    }
    writer->first_stamp = writer->next_stamp;
    writer->next_stamp += count;
    return (uint32_t *)writer->stamps.data;
}

typedef struct {
    uint32_t cells[LIGHT + MAX_REFS];
    uint8_t first_kid[LIGHT + MAX_REFS];
    unsigned count;
} LightOrder;

/* Return whether cells may be equal, judging by the first bytes of their hashes. */
static bool has_equals(const Tree *tree, const LightOrder *order)
{
    uint64_t prefixes[LIGHT + MAX_REFS];
    for (unsigned i = 0; i < order->count; i++) {
        memcpy(&prefixes[i], tree_hash(tree, order->cells[i], MAX_LEVEL), sizeof prefixes[i]);
        for (unsigned j = 0; j < i; j++)
            if (prefixes[i] == prefixes[j])
                return true;
    }
    return false;
}

/* Order a light tree: the children of the root, then the descendants of the first child in the same
   manner, then those of the second. False if it has too many cells, or duplicates. */
static bool order_light_tree(const Tree *tree, uint32_t root, uint32_t *stamps, uint32_t stamp,
                             LightOrder *order)
{
    uint8_t todo[LIGHT + MAX_REFS];
    unsigned waiting = 1;
    bool has_met = false;
    if (tree->cells[root].weight > LIGHT)
        return false;
    order->cells[0] = root;
    order->count = 1;
    todo[0] = 0;
    while (waiting) {
        unsigned place = todo[--waiting];
        const Cell *cell = &tree->cells[order->cells[place]];
        unsigned refs = cell_ref_count(cell);
        order->first_kid[place] = (uint8_t)order->count;
        for (unsigned i = 0; i < refs; i++) {
            todo[waiting + refs - 1 - i] = (uint8_t)order->count;
            order->cells[order->count++] = cell->refs[i];
            has_met |= stamps[cell->refs[i]] == stamp;
            stamps[cell->refs[i]] = stamp;
        }
        waiting += refs;
        if (has_met || order->count > LIGHT)
            return false;
    }
    return tree->is_distinct || !has_equals(tree, order);
}

static Status write_light_bag(const Tree *tree, const LightOrder *order, Heap *to)
{
    size_t size = 0;
    for (unsigned i = 0; i < order->count; i++) {
        const Cell *cell = &tree->cells[order->cells[i]];
        size += 2 + cell_bytes(cell) + cell_ref_count(cell);
    }
    if (!heap_reserve(to, MAX_HEAD_BYTES + size))
        return NO_MEMORY;
    uint8_t *out = write_head(to->data + to->size, order->count, 1, size);
    for (unsigned i = 0; i < order->count; i++) {
        const Cell *cell = &tree->cells[order->cells[i]];
        out = write_cell(out, cell);
        for (unsigned ref = 0; ref < cell_ref_count(cell); ref++)
            *out++ = (uint8_t)(order->first_kid[i] + ref);
    }
    to->size = (size_t)(out - to->data);
    return DONE;
}

static Status write_ordered_bag(Writer *writer, const Tree *tree, uint32_t root, Heap *to)
{
    Order order;
    Status status = order_tree(writer, tree, root, &order);
    if (status != DONE)
        return status;
    unsigned width = count_bytes(order.count);
    size_t size = 0;
    for (uint32_t i = 0; i < order.count; i++) {
        const Cell *cell = &tree->cells[order.locals[i].cell];
        size += 2 + cell_bytes(cell) + width * cell_ref_count(cell);
    }
    if (!heap_reserve(to, MAX_HEAD_BYTES + size))
        return NO_MEMORY;
    uint8_t *out = write_head(to->data + to->size, order.count, width, size);
    for (uint32_t i = order.count; i-- > 0;) {
        const Local *local = &order.locals[order.placed[i]];
        out = write_cell(out, &tree->cells[local->cell]);
        for (unsigned ref = 0; ref < local->ref_count; ref++, out += width)
            store_be(out, order.count - 1 - order.locals[local->refs[ref]].place, width);
    }
    to->size = (size_t)(out - to->data);
    return DONE;
}

Status write_bag(Writer *writer, const Tree *tree, uint32_t root, Heap *to)
{
    LightOrder order;
    uint32_t *stamps = writer_stamps(writer, tree, 1);
    if (!stamps)
        return NO_MEMORY;
    if (order_light_tree(tree, root, stamps, writer->first_stamp, &order))
        return write_light_bag(tree, &order, to);
    return write_ordered_bag(writer, tree, root, to);
}

Status write_part(Writer *writer, const Tree *tree, uint32_t root, Heap *to)
{
    uint32_t *places = heap_renew(&writer->placed, tree->count, sizeof *places), count = 0;
    size_t bytes = 0, refs = 0;
    if (!places)
        return NO_MEMORY;
    memset(places, 0, tree->count * sizeof *places);
    places[root] = 1;
    for (uint32_t index = root; index < tree->count; index++) { /* children come later */
        const Cell *cell = &tree->cells[index];
        if (!places[index])
            continue;
        places[index] = ++count;
        bytes += 2 + cell_bytes(cell);
        refs += cell_ref_count(cell);
        for (unsigned ref = 0; ref < cell_ref_count(cell); ref++)
            places[cell->refs[ref]] = 1;
    }
    unsigned width = count_bytes(count);
    if (!heap_reserve(to, MAX_HEAD_BYTES + bytes + width * refs))
        return NO_MEMORY;
    uint8_t *out = write_head(to->data + to->size, count, width, bytes + width * refs);
    for (uint32_t index = root; index < tree->count; index++) {
        if (!places[index])
            continue;
        out = write_cell(out, &tree->cells[index]);
        for (unsigned ref = 0; ref < cell_ref_count(&tree->cells[index]); ref++, out += width)
            store_be(out, places[tree->cells[index].refs[ref]] - 1, width);
    }
    to->size = (size_t)(out - to->data);
    return DONE;
}

void writer_free(Writer *writer)
{
    free(writer->slots);
    heap_free(&writer->locals);
    heap_free(&writer->stack);
    heap_free(&writer->listed);
    heap_free(&writer->placed);
    heap_free(&writer->tags);
    heap_free(&writer->stamps);
}
