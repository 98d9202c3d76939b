#include "order.h"

#define SHARED_WEIGHT 63
/* Below a cell of weight 48 no cell is special: see ingest/decode/cell/writer.py. */
#define LIGHT 48

enum { LISTED = 1, SPECIAL = 2, VISITED = 4, SEARCHED = 8, PLACED = 16 };
enum { SEARCH = 0, VISIT = 1, PLACE_KIDS = 3 };

/* Every step of a walk is pushed by a cell that is visited once: at most ten for each. */
#define STEPS_PER_CELL 10

typedef struct {
    Local *locals;
    uint32_t count;
    uint32_t *stack;
    uint32_t *listed, listed_count;
    uint32_t *placed, place_count;
    bool has_special;
} Placing;

/* List the cells heavier than `least`, children before parents. */
static void list_heavy(Placing *placing, unsigned least)
{
    Local *locals = placing->locals;
    uint32_t *stack = placing->stack, top = 0;
    for (uint32_t i = 0; i < placing->count; i++)
        locals[i].marks &= (uint8_t)~LISTED;
    placing->listed_count = 0;
    if (locals[0].weight > least)
        stack[top++] = 0;
    while (top) {
        uint32_t step = stack[--top];
        Local *local = &locals[step >> 1];
        if (step & 1) {
            placing->listed[placing->listed_count++] = step >> 1;
        } else if (!(local->marks & LISTED)) {
            local->marks |= LISTED;
            stack[top++] = step | 1;
            for (unsigned ref = local->ref_count; ref-- > 0;)
                if (locals[local->refs[ref]].weight > least)
                    stack[top++] = local->refs[ref] << 1;
        }
    }
}

static int cut_weight(const Local *local)
{
    return local->cut >= 0 ? local->cut : local->weight;
}

/* Cut the weights of the children of one cell so that their sum stays below 64; return whether a
   light one was cut. */
static bool share_weight(Placing *placing, const Local *local)
{
    int rest = SHARED_WEIGHT, heavy_count = 0;
    Local *heavy[MAX_REFS];
    bool cut_light = false;
    for (int place = 0; place < local->ref_count; place++) {
        Local *kid = &placing->locals[local->refs[place]];
        if (cut_weight(kid) <= (SHARED_WEIGHT + place) / local->ref_count)
            rest -= cut_weight(kid);
        else
            heavy[heavy_count++] = kid;
    }
    for (int i = 0; i < heavy_count; i++, rest++) {
        int limit = rest / heavy_count;
        if (cut_weight(heavy[i]) > limit) {
            heavy[i]->cut = (int16_t)limit;
            cut_light |= heavy[i]->weight <= LIGHT;
        }
    }
    return cut_light;
}

/* Distribute weights from the root down, then sum them up again from the leaves. */
static void find_special(Placing *placing)
{
    Local *locals = placing->locals;
    bool cut_light = false;
    list_heavy(placing, LIGHT);
    for (uint32_t i = placing->listed_count; i-- > 0;)
        cut_light |= share_weight(placing, &locals[placing->listed[i]]);
    if (cut_light)
        list_heavy(placing, 1);
    for (uint32_t i = 0; i < placing->listed_count; i++) {
        Local *local = &locals[placing->listed[i]];
        int total = 1;
        for (unsigned ref = 0; ref < local->ref_count; ref++) {
            const Local *kid = &locals[local->refs[ref]];
            total += kid->marks & SPECIAL ? 0 : cut_weight(kid);
        }
        if (total > cut_weight(local)) {
            local->marks |= SPECIAL;
            placing->has_special = true;
        }
        local->cut = (int16_t)total;
    }
}

static void place(Placing *placing, uint32_t number)
{
    Local *local = &placing->locals[number];
    if (local->marks & PLACED)
        return;
    local->marks |= PLACED;
    local->place = placing->place_count;
    placing->placed[placing->place_count++] = number;
}

/* Push the first steps of a visit of one cell; it ends with placing the children. */
static uint32_t push_visit(Placing *placing, uint32_t top, uint32_t step)
{
    const Local *local = &placing->locals[step >> 2];
    placing->stack[top++] = step | PLACE_KIDS;
    for (unsigned ref = 0; ref < local->ref_count; ref++)
        if (placing->locals[local->refs[ref]].ref_count)
            placing->stack[top++] = local->refs[ref] << 2 | VISIT;
    if (local->marks & SPECIAL)
        placing->stack[top++] = (step >> 2) << 2 | SEARCH;
    return top;
}

/* A search descends, last child first, until it finds special cells, which are visited. */
static uint32_t push_search(Placing *placing, uint32_t top, uint32_t step)
{
    Local *local = &placing->locals[step >> 2];
    if (!placing->has_special || local->marks & SEARCHED)
        return top;
    local->marks |= SEARCHED;
    for (unsigned ref = 0; ref < local->ref_count; ref++) {
        const Local *kid = &placing->locals[local->refs[ref]];
        if (kid->ref_count)
            placing->stack[top++] =
                local->refs[ref] << 2 | (kid->marks & SPECIAL ? VISIT : SEARCH);
    }
    return top;
}

static void place_all(Placing *placing)
{
    uint32_t top = 0;
    placing->stack[top++] = VISIT;
    placing->stack[top++] = SEARCH;
    while (top) {
        uint32_t step = placing->stack[--top];
        Local *local = &placing->locals[step >> 2];
        if ((step & 3) == PLACE_KIDS) {
            for (unsigned ref = local->ref_count; ref-- > 0;)
                place(placing, local->refs[ref]);
            local->marks |= VISITED;
        } else if (local->marks & VISITED) {
            continue;
        } else if ((step & 3) == VISIT) {
            top = push_visit(placing, top, step);
        } else {
            top = push_search(placing, top, step);
        }
    }
    place(placing, 0);
}

Status order_tree(Writer *writer, const Tree *tree, uint32_t root, Order *order)
{
    uint32_t count;
    Status status = find_locals(writer, tree, root, &count);
    if (status != DONE)
        return status;
    writer->stack.size = writer->listed.size = writer->placed.size = 0;
    size_t steps = (size_t)count * STEPS_PER_CELL + 2;
    if (!heap_reserve(&writer->stack, steps * sizeof(uint32_t)) ||
        !heap_reserve(&writer->listed, count * sizeof(uint32_t)) ||
        !heap_reserve(&writer->placed, count * sizeof(uint32_t)))
        return NO_MEMORY;
    Placing placing = {
        .locals = (Local *)writer->locals.data,
        .count = count,
        .stack = (uint32_t *)writer->stack.data,
        .listed = (uint32_t *)writer->listed.data,
        .placed = (uint32_t *)writer->placed.data,
    };
    find_special(&placing);
    place_all(&placing);
    *order = (Order){placing.locals, placing.placed, placing.place_count};
    return placing.place_count == count ? DONE : NOT_MINE;
}
