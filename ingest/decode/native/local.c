/* Finds the distinct cells of a bag, the locals, numbered in the order of visits. */
#include "order.h"

/* Return the slot of a hash, or the free one to use for it. */
static uint32_t *find_slot(const Writer *writer, const Tree *tree, uint32_t mask, const Hash *hash)
{
    const Local *locals = (const Local *)writer->locals.data;
    uint64_t at = hash_mix(hash, writer->seed) & mask;
    while (writer->slots[at]) {
        uint32_t cell = locals[writer->slots[at] - 1].cell;
        if (hash_equal(tree_hash(tree, cell, MAX_LEVEL), hash))
            break;
        at = (at + 1) & mask;
    }
    return &writer->slots[at];
}

/* Clear a table of `size` slots and insert the locals found so far. */
static bool make_slots(Writer *writer, const Tree *tree, uint32_t size, uint32_t local_count)
{
    if (writer->slot_count < size) {
        free(writer->slots);
        writer->slots = malloc(size * sizeof *writer->slots);
        writer->slot_count = writer->slots ? size : 0;
    }
    if (!writer->slots)
        return false;
    memset(writer->slots, 0, size * sizeof *writer->slots);
    for (uint32_t i = 0; i < local_count; i++) {
        uint32_t cell = ((const Local *)writer->locals.data)[i].cell;
        *find_slot(writer, tree, size - 1, tree_hash(tree, cell, MAX_LEVEL)) = i + 1;
    }
    return true;
}

static bool add_local(Writer *writer, const Tree *tree, uint32_t index)
{
    const Cell *cell = &tree->cells[index];
    if (!heap_reserve(&writer->locals, sizeof(Local)))
        return false;
    Local *local = (Local *)(writer->locals.data + writer->locals.size);
    *local = (Local){.cell = index, .cut = -1, .weight = cell->weight};
    local->ref_count = (uint8_t)cell_ref_count(cell);
    memcpy(local->refs, cell->refs, sizeof local->refs);
    writer->locals.size += sizeof *local;
    return true;
}

/* Number the distinct cells under `root` if duplicates are possible. */
static Status find_by_hash(Writer *writer, const Tree *tree, uint32_t root, uint32_t *count)
{
    uint32_t size = 256, found = 1;
    if (!add_local(writer, tree, root) || !make_slots(writer, tree, size, found))
        return NO_MEMORY;
    for (uint32_t i = 0; i < found; i++) {
        for (unsigned ref = 0; ref < ((Local *)writer->locals.data)[i].ref_count; ref++) {
            uint32_t kid = ((Local *)writer->locals.data)[i].refs[ref];
            uint32_t *slot = find_slot(writer, tree, size - 1, tree_hash(tree, kid, MAX_LEVEL));
            uint32_t number = *slot ? *slot - 1 : found;
            if (!*slot) {
                *slot = ++found;
                if (!add_local(writer, tree, kid))
                    return NO_MEMORY;
                if (found > size / 2 && !make_slots(writer, tree, size *= 2, found))
                    return NO_MEMORY;
            }
            ((Local *)writer->locals.data)[i].refs[ref] = number;
        }
    }
    *count = found;
    return DONE;
}

/* Number the cells under `root` of a tree without duplicates. An appended root cannot equal any of
   them: it would be its own descendant. */
static Status find_by_index(Writer *writer, const Tree *tree, uint32_t root, uint32_t *count)
{
    uint32_t found = 1, *stamps = writer_stamps(writer, tree, tree->count);
    uint32_t first = writer->first_stamp;
    if (!stamps || !add_local(writer, tree, root))
        return NO_MEMORY;
    for (uint32_t i = 0; i < found; i++) {
        for (unsigned ref = 0; ref < ((Local *)writer->locals.data)[i].ref_count; ref++) {
            uint32_t kid = ((Local *)writer->locals.data)[i].refs[ref];
            if (stamps[kid] < first) {
                stamps[kid] = first + found++;
                if (!add_local(writer, tree, kid))
                    return NO_MEMORY;
            }
            ((Local *)writer->locals.data)[i].refs[ref] = stamps[kid] - first;
        }
    }
    writer->next_stamp = first + found;
    *count = found;
    return DONE;
}

Status find_locals(Writer *writer, const Tree *tree, uint32_t root, uint32_t *count)
{
    writer->locals.size = 0;
    if (tree->is_distinct)
        return find_by_index(writer, tree, root, count);
    return find_by_hash(writer, tree, root, count);
}
