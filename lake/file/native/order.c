/* Sorts rows; most arrive sorted, which one pass detects. */
#include "file.h"

typedef struct {
    Values of[MAX_KEYS];
    size_t count;
} Keys;

static int64_t number_at(const Values *values, int64_t row)
{
    const struct ArrowArray *array = values->array;
    int64_t at = array->offset + row;
    if (values->form == BITS)
        return ((const uint8_t *)array->buffers[1])[at >> 3] >> (at & 7) & 1;
    if (values->form == TINY)
        return ((const int8_t *)array->buffers[1])[at];
    return values->width == 4 ? ((const int32_t *)array->buffers[1])[at]
                              : ((const int64_t *)array->buffers[1])[at];
}

/* NULL sorts last. */
static int compare_values(const Values *values, int64_t one, int64_t other)
{
    bool has_one = is_valid(values->array, one), has_other = is_valid(values->array, other);
    if (!has_one || !has_other)
        return has_other - has_one;
    if (values->physical != BYTE_ARRAY && values->physical != FIXED_BYTES) {
        int64_t first = number_at(values, one), second = number_at(values, other);
        return (first > second) - (first < second);
    }
    size_t first_size, second_size;
    const uint8_t *first = value_at(values, one, &first_size);
    const uint8_t *second = value_at(values, other, &second_size);
    size_t common = first_size < second_size ? first_size : second_size;
    int order = common ? memcmp(first, second, common) : 0;
    return order ? order : (first_size > second_size) - (first_size < second_size);
}

static int compare(const Keys *keys, uint32_t one, uint32_t other)
{
    int order = 0;
    for (size_t i = 0; i < keys->count && !order; i++)
        order = compare_values(&keys->of[i], one, other);
    return order;
}

/* Open the columns to compare; false if the type of one is not supported here. */
static bool open_keys(const struct ArrowSchema *schema, const struct ArrowArray *rows,
                      const Plan *plan, Keys *keys)
{
    keys->count = plan->sorted_count;
    if (keys->count > MAX_KEYS)
        return false;
    for (size_t i = 0; i < keys->count; i++) {
        Column column;
        size_t at = plan->sorted[i];
        if (at >= plan->columns || column_open(schema->children[at], rows->children[at],
                                               rows->length, &column) != DONE)
            return false;
        keys->of[i] = column.values;
        if (column.lists || column.values.form == AMOUNTS)
            return false;
    }
    return true;
}

/* Merge sort, bottom-up from runs of one row; stable. */
static void merge_runs(const Keys *keys, uint32_t *order, size_t count)
{
    uint32_t merged[MAX_LEVELS];
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = start + width < count ? start + width : count;
            size_t end = middle + width < count ? middle + width : count;
            size_t one = start, other = middle;
            for (size_t to = start; to < end; to++) {
                bool is_first = other == end ||
                                (one < middle && compare(keys, order[one], order[other]) <= 0);
                merged[to] = is_first ? order[one++] : order[other++];
            }
        }
        memcpy(order, merged, count * sizeof *order);
    }
}

Status find_order(const struct ArrowSchema *schema, const struct ArrowArray *rows,
                  const Plan *plan, uint32_t *order)
{
    Keys keys;
    if (rows->length > MAX_LEVELS || !open_keys(schema, rows, plan, &keys))
        return DECLINED;
    size_t count = (size_t)rows->length;
    bool in_order = true;
    for (size_t row = 0; row < count; row++) {
        order[row] = (uint32_t)row;
        in_order = in_order && (!row || compare(&keys, (uint32_t)row - 1, (uint32_t)row) <= 0);
    }
    if (!in_order)
        merge_runs(&keys, order, count);
    return DONE;
}
