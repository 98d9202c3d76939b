/* Converts Arrow arrays to Parquet levels and plain values. */
#include "column.h"

#include <stdio.h>

enum { NULLABLE = 2, AMOUNT_BYTES = 16, MAX_WIDTH = 4096 };

/* Parse an Arrow format string; false: the type is not supported. */
static bool read_format(const char *format, Values *values)
{
    static const struct {
        const char *format;
        Form form;
        Physical physical;
        size_t width;
    } known[] = {
        {"b", BITS, BOOLEAN, 0},
        {"c", TINY, INT32, 1},
        {"i", FIXED, INT32, 4},
        {"l", FIXED, INT64, 8},
        {"tsu:", FIXED, INT64, 8},
        {"z", VARYING, BYTE_ARRAY, 0},
        {"u", VARYING, BYTE_ARRAY, 0},
        {"d:38,0", AMOUNTS, FIXED_BYTES, AMOUNT_BYTES},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(format, known[i].format) == 0) {
            values->form = known[i].form;
            values->physical = known[i].physical;
            values->width = known[i].width;
            return true;
        }
    int width, end = 0;
    if (sscanf(format, "w:%4d%n", &width, &end) != 1 || format[end] || width < 1 ||
        width > MAX_WIDTH)
        return false;
    values->form = FIXED;
    values->physical = FIXED_BYTES;
    values->width = (size_t)width;
    return true;
}

static bool open_values(const struct ArrowSchema *schema, const struct ArrowArray *array,
                        Values *values)
{
    values->array = array;
    values->nullable = schema->flags & NULLABLE;
    return !schema->dictionary && !array->dictionary && read_format(schema->format, values) &&
           array->n_buffers == (values->form == VARYING ? 3 : 2);
}

Status column_open(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t rows,
                   Column *column)
{
    *column = (Column){.name = schema->name};
    if (!schema->name || array->length != rows || array->offset < 0)
        return DECLINED;
    if (strcmp(schema->format, "+l") != 0)
        return open_values(schema, array, &column->values) ? DONE : DECLINED;
    if (schema->n_children != 1 || array->n_children != 1 || array->n_buffers != 2)
        return DECLINED;
    column->lists = array;
    column->nullable_lists = schema->flags & NULLABLE;
    return open_values(schema->children[0], array->children[0], &column->values) ? DONE : DECLINED;
}

/* Add a level without a value. */
static bool add_absent(Page *page, unsigned repeated, unsigned defined)
{
    if (page->levels == MAX_LEVELS)
        return false;
    page->repeated[page->levels] = (uint8_t)repeated;
    page->defined[page->levels++] = (uint8_t)defined;
    return true;
}

/* Add the value at a place of the array, or a NULL; false if NULL is not allowed. */
static bool add_value(Page *page, const Column *column, unsigned repeated, int64_t place)
{
    bool valid = is_valid(column->values.array, place);
    if (!valid && !column->values.nullable)
        return false;
    if (!add_absent(page, repeated, max_defined(column) - !valid))
        return false;
    if (valid) {
        page->adjoin = page->adjoin && (!page->count || page->places[page->count - 1] == place - 1);
        page->places[page->count++] = place;
    }
    return true;
}

static bool add_list(Page *page, const Column *column, int64_t row)
{
    if (!is_valid(column->lists, row))
        return column->nullable_lists && add_absent(page, 0, 0);
    const int32_t *offsets = (const int32_t *)column->lists->buffers[1] + column->lists->offset;
    int32_t start = offsets[row], end = offsets[row + 1];
    if (start < 0 || end < start || end > column->values.array->length)
        return false;
    if (start == end)
        return add_absent(page, 0, column->nullable_lists);
    for (int32_t place = start; place < end; place++)
        if (!add_value(page, column, place > start, place))
            return false;
    return true;
}

Status column_read(const Column *column, const uint32_t *order, int64_t rows, Page *page)
{
    page->levels = page->count = 0;
    page->adjoin = true;
    for (int64_t i = 0; i < rows; i++)
        if (column->lists ? !add_list(page, column, order[i])
                          : !add_value(page, column, 0, order[i]))
            return DECLINED;
    return DONE;
}

static void put_bits(Output *output, const struct ArrowArray *array, const Page *page)
{
    const uint8_t *map = array->buffers[1];
    size_t size = (page->count + 7) / 8;
    uint8_t *to = size ? output_room(output, size) : NULL;
    if (!to)
        return;
    memset(to, 0, size);
    for (size_t i = 0; i < page->count; i++) {
        int64_t at = array->offset + page->places[i];
        to[i / 8] |= (uint8_t)((map[at >> 3] >> (at & 7) & 1) << i % 8);
    }
    output->size += size;
}

/* One-byte numbers are stored in four. */
static void put_tiny(Output *output, const Values *values, const Page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        size_t size;
        put_u32(output, (uint32_t)(int32_t)(int8_t)*value_at(values, page->places[i], &size));
    }
}

static void put_fixed(Output *output, const Values *values, const Page *page)
{
    size_t size = values->width, all = page->count * size;
    uint8_t *to = all ? output_room(output, all) : NULL;
    if (!to)
        return;
    if (page->adjoin)
        memcpy(to, value_at(values, page->places[0], &size), all);
    else
        for (size_t i = 0; i < page->count; i++, to += size)
            memcpy(to, value_at(values, page->places[i], &size), size);
    output->size += all;
}

/* Amounts are big-endian in Parquet. */
static void put_amounts(Output *output, const Values *values, const Page *page)
{
    size_t size, all = page->count * AMOUNT_BYTES;
    uint8_t *to = all ? output_room(output, all) : NULL;
    if (!to)
        return;
    for (size_t i = 0; i < page->count; i++, to += AMOUNT_BYTES) {
        const uint8_t *from = value_at(values, page->places[i], &size);
        for (size_t at = 0; at < AMOUNT_BYTES; at++)
            to[at] = from[AMOUNT_BYTES - 1 - at];
    }
    output->size += all;
}

static uint64_t put_varying(Output *output, const Values *values, const Page *page)
{
    uint64_t total = 0;
    for (size_t i = 0; i < page->count; i++) {
        size_t size;
        const uint8_t *from = value_at(values, page->places[i], &size);
        put_u32(output, (uint32_t)size);
        put_bytes(output, from, size);
        total += size;
    }
    return total;
}

uint64_t put_values(Output *output, const Values *values, const Page *page)
{
    switch (values->form) {
    case BITS:
        put_bits(output, values->array, page);
        return 0;
    case TINY:
        put_tiny(output, values, page);
        return 0;
    case FIXED:
        put_fixed(output, values, page);
        return 0;
    case AMOUNTS:
        put_amounts(output, values, page);
        return 0;
    default:
        return put_varying(output, values, page);
    }
}
