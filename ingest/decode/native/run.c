#include "run.h"

/* Minimum weight and references to the root of a run that is worth building. A message has three
   references: its transaction and two descriptions. */
#define MIN_WEIGHT 12
#define MIN_PARENTS 8

enum { UNKNOWN = 0, NO_RUN = 1, FIRST_RUN = 2 };

/* A byte of a part that is the number of a cell, as an offset from the beginning of its part. */
typedef struct {
    uint32_t at;
    uint8_t part, offset;
} Patch;

Status runs_open(Writer *writer, const Tree *tree)
{
    uint32_t *run_of = heap_renew(&writer->run_of, tree->count, sizeof *run_of);
    writer->runs.size = writer->run_bytes.size = writer->patches.size = 0;
    if (!run_of)
        return NO_MEMORY;
    memset(run_of, 0, tree->count * sizeof *run_of);
    writer->run_of.size = tree->count * sizeof *run_of;
    return DONE;
}

uint32_t run_find(const Writer *writer, const Tree *tree, uint32_t cell, bool *is_known)
{
    *is_known = true;
    if (tree->cells[cell].weight < MIN_WEIGHT ||
        cell >= writer->run_of.size / sizeof(uint32_t) || tree->parents[cell] < MIN_PARENTS)
        return 0;
    uint32_t found = ((const uint32_t *)writer->run_of.data)[cell];
    *is_known = found != UNKNOWN;
    return found >= FIRST_RUN ? found - FIRST_RUN + 1 : 0;
}

/* Return whether no cell outside refers to the cells below the root. */
static bool is_sealed(const Tree *tree, const Order *order)
{
    for (uint32_t i = 1; i < order->count; i++)
        if (order->locals[i].parents != tree->parents[order->locals[i].cell] ||
            order->locals[i].parents >= UINT8_MAX)
            return false;
    return true;
}

/* Return the part of a cell below the root, and its index in it. */
static Patch locate(const Order *order, uint32_t local, size_t at)
{
    uint32_t place = order->locals[local].place;
    unsigned part = place >= order->searched;
    return (Patch){(uint32_t)at, (uint8_t)part,
                   (uint8_t)(part ? place - order->searched : place)};
}

/* Write the cells placed from `first` up to `end`, the last one first as in a bag. */
static bool make_part(Writer *writer, const Tree *tree, const Order *order, uint32_t first,
                      uint32_t end, Part *to)
{
    Heap *bytes = &writer->run_bytes;
    *to = (Part){.count = end - first, .start = bytes->size, .patches = writer->patches.size};
    for (uint32_t i = end; i-- > first;) {
        const Local *local = &order->locals[order->placed[i]];
        const Cell *cell = &tree->cells[local->cell];
        const uint8_t head[2] = {cell->d1, cell->d2}, none = 0;
        if (!heap_append(bytes, head, 2) || !heap_append(bytes, cell->data, cell_bytes(cell)))
            return false;
        for (unsigned ref = 0; ref < local->ref_count; ref++) {
            Patch patch = locate(order, local->refs[ref], bytes->size - to->start);
            if (!heap_append(&writer->patches, &patch, sizeof patch) ||
                !heap_append(bytes, &none, 1))
                return false;
        }
    }
    to->size = bytes->size - to->start;
    to->patch_count = (writer->patches.size - to->patches) / sizeof(Patch);
    return true;
}

Status run_make(Writer *writer, const Tree *tree, uint32_t cell)
{
    Order order;
    Run run = {0};
    Status status = order_plainly(writer, tree, cell, &order);
    if (status != DONE)
        return status;
    uint32_t *run_of = (uint32_t *)writer->run_of.data + cell;
    *run_of = NO_RUN;
    if (order.count > MAX_RUN_BAG || !is_sealed(tree, &order))
        return DONE;
    const Local *root = &order.locals[0];
    run.has_special = order.has_special;
    run.total = root->cut >= 0 ? root->cut : root->weight;
    run.kid_count = root->ref_count;
    for (unsigned ref = 0; ref < root->ref_count; ref++) {
        Patch kid = locate(&order, root->refs[ref], 0);
        run.kids[ref].part = kid.part;
        run.kids[ref].offset = kid.offset;
    }
    if (!make_part(writer, tree, &order, 0, order.searched, &run.parts[0]) ||
        !make_part(writer, tree, &order, order.searched, order.count - 1, &run.parts[1]) ||
        !heap_append(&writer->runs, &run, sizeof run))
        return NO_MEMORY;
    *run_of = (uint32_t)(writer->runs.size / sizeof run) - 1 + FIRST_RUN;
    return DONE;
}

uint8_t *write_part(const Writer *writer, const Local *local, unsigned number, uint32_t count,
                    uint8_t *to)
{
    const Part *part = &run_at(writer, local->run)->parts[number];
    const Patch *patches = (const Patch *)(writer->patches.data + part->patches);
    if (!part->count)
        return to;
    memcpy(to, writer->run_bytes.data + part->start, part->size);
    for (size_t i = 0; i < part->patch_count; i++)
        to[patches[i].at] =
            (uint8_t)(count - 1 - local->parts[patches[i].part] - patches[i].offset);
    return to + part->size;
}

uint8_t *write_kids(const Writer *writer, const Local *local, uint32_t count, uint8_t *to)
{
    const Run *run = run_at(writer, local->run);
    for (unsigned ref = 0; ref < run->kid_count; ref++)
        *to++ = (uint8_t)(count - 1 - local->parts[run->kids[ref].part] - run->kids[ref].offset);
    return to;
}
