/* Bags of any cells in the node's order; follows ingest/decode/cell/order.py step by step. */
#include "bag.h"

#include <stdlib.h>
#include <string.h>

#define SHARED_WEIGHT 63
#define MAX_WEIGHT 255
#define LIGHT 48
#define NOT_CUT 0xFFFF
#define SLOTS 8192 /* more than MAX_CELLS, a power of two */

enum { SEARCH, VISIT, PLACE_KIDS = 3 };

struct Order {
    Bag *bag;
    uint16_t refs[MAX_CELLS + 1][MAX_REFS]; /* equal cells are merged */
    uint16_t weights[MAX_CELLS + 1], cuts[MAX_CELLS + 1], places[MAX_CELLS + 1];
    bool is_special[MAX_CELLS + 1], is_guide[MAX_CELLS + 1];
    bool is_placed[MAX_CELLS + 1], is_visited[MAX_CELLS + 1];
    uint16_t listed[MAX_CELLS + 1]; /* cells with children, parents last */
    uint16_t placed[MAX_CELLS + 1]; /* last cell of the bag first */
    unsigned listed_count, placed_count;
    int32_t todo[12 * (MAX_CELLS + 1)];
};

static uint32_t hash_cell(const Cell *cell, const uint16_t *refs)
{
    uint32_t hash = 2166136261u ^ cell->bits;
    for (unsigned i = 0; i < cell->byte_count; i++)
        hash = (hash ^ cell->data[i]) * 16777619u;
    for (unsigned r = 0; r < cell->ref_count; r++)
        hash = (hash ^ refs[r]) * 16777619u;
    return hash ^ hash >> 15;
}

/* Find the first equal cell of each cell, children first. */
static void find_twins(Bag *bag)
{
    uint16_t slots[SLOTS];
    memset(slots, 0xFF, sizeof slots);
    for (unsigned i = bag->count; i-- > 0;) {
        const Cell *cell = &bag->cells[i];
        uint16_t refs[MAX_REFS];
        for (unsigned r = 0; r < cell->ref_count; r++)
            refs[r] = bag->twins[cell->refs[r]];
        unsigned slot = hash_cell(cell, refs) % SLOTS;
        for (; slots[slot] != 0xFFFF; slot = (slot + 1) % SLOTS) {
            const Cell *other = &bag->cells[slots[slot]];
            bool is_same = other->bits == cell->bits && other->ref_count == cell->ref_count &&
                           !memcmp(other->data, cell->data, cell->byte_count);
            for (unsigned r = 0; is_same && r < cell->ref_count; r++)
                is_same = bag->twins[other->refs[r]] == refs[r];
            if (is_same)
                break;
        }
        if (slots[slot] == 0xFFFF)
            slots[slot] = (uint16_t)i;
        bag->twins[i] = slots[slot];
    }
    bag->has_twins = true;
}

static unsigned count_refs(const Order *order, unsigned cell)
{
    return order->bag->cells[cell].ref_count;
}

static unsigned cut_of(const Order *order, unsigned cell)
{
    return order->cuts[cell] == NOT_CUT ? order->weights[cell] : order->cuts[cell];
}

/* Compute the weights of the cells below the root, and list those with children. */
static void weigh(Order *order, unsigned root)
{
    unsigned waiting = 0;
    order->todo[waiting++] = (int32_t)root;
    while (waiting) {
        int32_t step = order->todo[--waiting];
        unsigned cell = (unsigned)(step < 0 ? ~step : step);
        const uint16_t *refs = order->refs[cell];
        unsigned count = count_refs(order, cell);
        if (step < 0) {
            unsigned total = 1;
            for (unsigned r = 0; r < count; r++)
                total += order->weights[refs[r]];
            order->weights[cell] = (uint16_t)(total < MAX_WEIGHT ? total : MAX_WEIGHT);
            order->listed[order->listed_count++] = (uint16_t)cell;
        } else if (!order->weights[cell]) {
            order->weights[cell] = 1;
            order->cuts[cell] = NOT_CUT;
            for (unsigned r = 0; r < count; r++)
                order->refs[cell][r] = order->bag->twins[order->bag->cells[cell].refs[r]];
            if (count)
                order->todo[waiting++] = ~(int32_t)cell;
            for (unsigned r = count; r-- > 0;)
                order->todo[waiting++] = refs[r];
        }
    }
}

/* Cut the weights of the children of a cell; return whether a light one was cut. */
static bool share(Order *order, unsigned cell)
{
    unsigned heavy[MAX_REFS], heavy_count = 0, count = count_refs(order, cell);
    int rest = SHARED_WEIGHT;
    bool is_light = false;
    for (unsigned r = 0; r < count; r++) {
        unsigned kid = order->refs[cell][r], weight = cut_of(order, kid);
        if (weight <= (SHARED_WEIGHT + r) / count)
            rest -= (int)weight;
        else
            heavy[heavy_count++] = kid;
    }
    for (unsigned i = 0; i < heavy_count; i++, rest++) {
        unsigned limit = (unsigned)rest / heavy_count;
        if (cut_of(order, heavy[i]) > limit) {
            order->cuts[heavy[i]] = (uint16_t)limit;
            is_light |= order->weights[heavy[i]] <= LIGHT;
        }
    }
    return is_light;
}

/* Find special cells and their ancestors. */
static void find_special(Order *order)
{
    unsigned least = LIGHT + 1;
    for (unsigned i = order->listed_count; i-- > 0;)
        if (order->weights[order->listed[i]] > LIGHT && share(order, order->listed[i]))
            least = 2;
    for (unsigned i = 0; i < order->listed_count; i++) {
        unsigned cell = order->listed[i], total = 1;
        if (order->weights[cell] < least)
            continue;
        for (unsigned r = 0; r < count_refs(order, cell); r++) {
            unsigned kid = order->refs[cell][r];
            if (order->is_special[kid] || order->is_guide[kid])
                order->is_guide[cell] = true;
            if (!order->is_special[kid])
                total += cut_of(order, kid);
        }
        if (total > cut_of(order, cell))
            order->is_special[cell] = true;
        order->cuts[cell] = (uint16_t)total;
    }
}

static void place(Order *order, unsigned cell)
{
    if (!order->is_placed[cell])
        order->placed[order->placed_count++] = (uint16_t)cell;
    order->is_placed[cell] = true;
}

/* Run a step and all steps that follow from it. */
static void follow(Order *order, unsigned root, int first)
{
    int32_t *todo = order->todo;
    unsigned waiting = 0;
    todo[waiting++] = (int32_t)(root << 2) | first;
    while (waiting) {
        int32_t step = todo[--waiting];
        unsigned cell = (unsigned)step >> 2, count = count_refs(order, cell);
        const uint16_t *refs = order->refs[cell];
        if ((step & 3) == PLACE_KIDS) {
            for (unsigned r = count; r-- > 0;)
                place(order, refs[r]);
            order->is_visited[cell] = true;
        } else if (order->is_visited[cell]) {
            continue;
        } else if ((step & 3) == VISIT) {
            todo[waiting++] = step | PLACE_KIDS;
            for (unsigned r = 0; r < count; r++)
                if (count_refs(order, refs[r]))
                    todo[waiting++] = (int32_t)refs[r] << 2 | VISIT;
            if (order->is_special[cell])
                todo[waiting++] = (int32_t)(cell << 2) | SEARCH;
        } else if (order->is_guide[cell]) {
            order->is_guide[cell] = false; /* one search is enough */
            for (unsigned r = 0; r < count; r++)
                if (count_refs(order, refs[r]))
                    todo[waiting++] =
                        (int32_t)refs[r] << 2 | (order->is_special[refs[r]] ? VISIT : SEARCH);
        }
    }
}

static uint8_t *put_big(uint8_t *at, size_t number, unsigned width)
{
    while (width--)
        *at++ = (uint8_t)(number >> 8 * width);
    return at;
}

static unsigned measure_width(size_t number)
{
    unsigned width = 1;
    while (number >> 8 * width)
        width++;
    return width;
}

static size_t write_placed(const Order *order, uint8_t **target, size_t *room)
{
    static const uint8_t MAGIC[] = {0xB5, 0xEE, 0x9C, 0x72};
    unsigned count = order->placed_count, width = measure_width(count);
    size_t body = 0;
    for (unsigned i = 0; i < count; i++) {
        const Cell *cell = &order->bag->cells[order->placed[i]];
        body += 2u + cell->byte_count + (size_t)cell->ref_count * width;
    }
    if (body + 32 > *room) {
        uint8_t *grown = realloc(*target, body + 32);
        if (!grown)
            return 0;
        *target = grown;
        *room = body + 32;
    }
    uint8_t *at = *target;
    memcpy(at, MAGIC, 4);
    at[4] = (uint8_t)width;
    at[5] = (uint8_t)measure_width(body);
    at = put_big(at + 6, count, width);
    at = put_big(at, 1, width);
    at = put_big(at, 0, width);
    at = put_big(at, body, measure_width(body));
    at = put_big(at, 0, width);
    for (unsigned i = count; i-- > 0;) {
        const Cell *cell = &order->bag->cells[order->placed[i]];
        *at++ = cell->ref_count;
        *at++ = (uint8_t)(cell->bits / 8 + (cell->bits + 7u) / 8);
        memcpy(at, cell->data, cell->byte_count);
        at += cell->byte_count;
        for (unsigned r = 0; r < cell->ref_count; r++)
            at = put_big(at, order->places[order->refs[order->placed[i]][r]], width);
    }
    return (size_t)(at - *target);
}

/* Reset the cells of the written bag: all of them were placed. */
static void clear(Order *order)
{
    for (unsigned i = 0; i < order->placed_count; i++) {
        unsigned cell = order->placed[i];
        order->weights[cell] = 0;
        order->is_special[cell] = order->is_guide[cell] = false;
        order->is_placed[cell] = order->is_visited[cell] = false;
    }
    order->listed_count = order->placed_count = 0;
}

size_t write_ordered(Bag *bag, const Cell *root, Order **scratch, uint8_t **target, size_t *room)
{
    if (!*scratch)
        *scratch = calloc(1, sizeof **scratch);
    Order *order = *scratch;
    if (!order)
        return 0;
    if (!bag->has_twins)
        find_twins(bag);
    order->bag = bag;
    bag->cells[bag->count] = *root;
    weigh(order, bag->count);
    find_special(order);
    follow(order, bag->count, SEARCH);
    follow(order, bag->count, VISIT);
    place(order, bag->count);
    for (unsigned i = 0; i < order->placed_count; i++)
        order->places[order->placed[i]] = (uint16_t)(order->placed_count - 1 - i);
    size_t size = write_placed(order, target, room);
    clear(order);
    return size;
}
