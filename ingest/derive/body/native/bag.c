#include "bag.h"

#include <string.h>

static const uint8_t MAGIC[] = {0xB5, 0xEE, 0x9C, 0x72};
#define MAX_LIGHT 48 /* cells of a tree without special cells: see ingest/decode/cell/order.py */

static size_t read_number(const uint8_t *data, unsigned width)
{
    size_t number = 0;
    while (width--)
        number = number << 8 | *data++;
    return number;
}

/* Measure the data of a cell; return false for a completion tag that no serializer writes. */
static bool measure_bits(Cell *cell, uint8_t d2)
{
    cell->byte_count = (uint8_t)((d2 >> 1) + (d2 & 1));
    cell->bits = (uint16_t)(cell->byte_count * 8);
    if (!(d2 & 1))
        return true;
    uint8_t last = cell->data[cell->byte_count - 1];
    if (!(last & 0x7F))
        return false;
    while (!(last & 1)) {
        last >>= 1;
        cell->bits--;
    }
    cell->bits--;
    return true;
}

static bool measure_depths(Bag *bag)
{
    for (unsigned i = bag->count; i-- > 0;) {
        Cell *cell = &bag->cells[i];
        cell->depth = 0;
        for (unsigned r = 0; r < cell->ref_count; r++) {
            unsigned kid = cell->refs[r];
            if (kid <= i || kid >= bag->count)
                return false;
            if (bag->cells[kid].depth >= cell->depth)
                cell->depth = (uint16_t)(bag->cells[kid].depth + 1);
        }
        if (cell->depth > MAX_DEPTH)
            return false;
    }
    return true;
}

bool read_bag(Bag *bag, const uint8_t *data, size_t size)
{
    if (size < 6 || memcmp(data, MAGIC, 4) || data[4] & 0xF8)
        return false;
    unsigned width = data[4] & 7, offset_width = data[5];
    if (!width || width > 2 || !offset_width || offset_width > 4)
        return false;
    size_t head = 6 + 4 * (size_t)width + offset_width;
    if (size < head)
        return false;
    const uint8_t *at = data + 6;
    bag->count = (unsigned)read_number(at, width);
    size_t roots = read_number(at + width, width), absent = read_number(at + 2 * width, width);
    size_t total = read_number(at + 3 * width, offset_width);
    size_t root = read_number(at + 3 * width + offset_width, width);
    if (!bag->count || bag->count > MAX_CELLS || roots != 1 || absent || root)
        return false;
    if (total != size - head)
        return false;
    bag->bytes = 0;
    bag->has_twins = false;
    size_t pos = head;
    for (unsigned i = 0; i < bag->count; i++) {
        Cell *cell = &bag->cells[i];
        if (size - pos < 2 || data[pos] > MAX_REFS)
            return false;
        cell->ref_count = data[pos];
        cell->data = data + pos + 2;
        unsigned bytes = (data[pos + 1] >> 1) + (data[pos + 1] & 1u);
        if (size - pos < 2 + bytes + (size_t)cell->ref_count * width ||
            !measure_bits(cell, data[pos + 1]))
            return false;
        pos += 2 + bytes;
        for (unsigned r = 0; r < cell->ref_count; r++, pos += width)
            cell->refs[r] = (uint16_t)read_number(data + pos, width);
        bag->bytes += 2 + bytes;
    }
    return pos == size && measure_depths(bag);
}

/* Return whether all cells differ: without shared cells, equal cells must have equal leaves. */
static bool are_distinct(const Cell *const *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const Cell *a = order[i];
        for (unsigned j = i + 1; !a->ref_count && j < count; j++) {
            const Cell *b = order[j];
            if (!b->ref_count && a->bits == b->bits && !memcmp(a->data, b->data, a->byte_count))
                return false;
        }
    }
    return true;
}

size_t write_light(const Bag *bag, const Cell *root, uint8_t *target)
{
    const Cell *order[MAX_LIGHT + MAX_REFS + 1] = {root};
    uint8_t kids[MAX_LIGHT + MAX_REFS + 1][MAX_REFS];
    uint8_t todo[MAX_LIGHT + MAX_REFS + 1] = {0};
    unsigned count = 1, waiting = 1;
    size_t body = 0;
    while (waiting) {
        unsigned place = todo[--waiting];
        const Cell *cell = order[place];
        for (unsigned r = 0; r < cell->ref_count; r++) {
            const Cell *kid = &bag->cells[cell->refs[r]];
            for (unsigned i = 0; i < count; i++)
                if (order[i] == kid)
                    return 0;
            kids[place][r] = (uint8_t)count;
            order[count++] = kid;
        }
        for (unsigned r = cell->ref_count; r-- > 0;)
            todo[waiting++] = kids[place][r];
        if (count > MAX_LIGHT)
            return 0;
        body += 2u + cell->byte_count + cell->ref_count;
    }
    if (!are_distinct(order, count))
        return 0;
    unsigned width = body > 0xFF ? 2 : 1;
    memcpy(target, MAGIC, 4);
    uint8_t *at = target + 4;
    *at++ = 1;
    *at++ = (uint8_t)width;
    *at++ = (uint8_t)count;
    *at++ = 1;
    *at++ = 0;
    if (width == 2)
        *at++ = (uint8_t)(body >> 8);
    *at++ = (uint8_t)body;
    *at++ = 0;
    for (unsigned i = 0; i < count; i++) {
        const Cell *cell = order[i];
        *at++ = cell->ref_count;
        *at++ = (uint8_t)(cell->bits / 8 + (cell->bits + 7u) / 8);
        memcpy(at, cell->data, cell->byte_count);
        at += cell->byte_count;
        memcpy(at, kids[i], cell->ref_count);
        at += cell->ref_count;
    }
    return (size_t)(at - target);
}
