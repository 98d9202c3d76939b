/* From rows to the buffers of Arrow. Rows are taken in tiles that stay in the cache while one
   column after the other is read out of them. */
#include "table.h"

#define TILE_ROWS 256

typedef struct {
    const uint8_t *rows;
    size_t row_bytes;
    const uint32_t *order;
    const uint8_t *heap;
    size_t start, end; /* of this tile, in the order */
} Tile;

static inline const uint8_t *tile_row(const Tile *tile, size_t place)
{
    return tile->rows + tile->order[place] * tile->row_bytes;
}

static size_t kind_bytes(Kind kind)
{
    static const size_t bytes[KIND_COUNT] = {
        [KIND_int8] = 1, [KIND_int32] = 4, [KIND_int64] = 8,
        [KIND_time] = 8, [KIND_hash] = HASH_BYTES, [KIND_amount] = 16,
    };
    return bytes[kind];
}

/* Allocate what the number of rows decides; bit maps begin as zeroes. */
static bool prepare(Array *array, Kind kind, size_t rows)
{
    size_t map_bytes = (rows + 7) / 8, bytes = kind_bytes(kind) * rows;
    bool has_offsets = false;
    if (kind == KIND_bool) {
        bytes = map_bytes;
    } else if (!kind_bytes(kind)) {
        has_offsets = true;
        bytes = 1; /* grows; Arrow wants a buffer even where all values are empty */
    }
    if (!heap_reserve(&array->validity, map_bytes) || !heap_reserve(&array->values, bytes))
        return false;
    memset(array->validity.data, 0, map_bytes);
    array->validity.size = map_bytes;
    if (kind == KIND_bool)
        memset(array->values.data, 0, bytes);
    array->values.size = has_offsets ? 0 : bytes;
    int32_t zero = 0;
    return !has_offsets || (heap_reserve(&array->offsets, (rows + 1) * sizeof zero) &&
                            heap_append(&array->offsets, &zero, sizeof zero));
}

static void fill_validity(const Tile *tile, const Column *column, Array *array)
{
    for (size_t i = tile->start; i < tile->end; i++) {
        bool present = tile_row(tile, i)[column->presence];
        array->validity.data[i >> 3] |= (uint8_t)(present << (i & 7));
        array->null_count += !present;
    }
}

static void fill_bools(const Tile *tile, const Column *column, Array *array)
{
    for (size_t i = tile->start; i < tile->end; i++)
        array->values.data[i >> 3] |= (uint8_t)(tile_row(tile, i)[column->value] << (i & 7));
}

static inline void fill_fixed(const Tile *tile, const Column *column, Array *array, size_t width)
{
    uint8_t *to = array->values.data + tile->start * width;
    for (size_t i = tile->start; i < tile->end; i++, to += width)
        memcpy(to, tile_row(tile, i) + column->value, width);
}

static Status append_bytes(Array *array, const void *bytes, size_t size, size_t unit)
{
    if (!heap_append(&array->values, bytes, size))
        return NO_MEMORY;
    if (array->values.size / unit > INT32_MAX)
        return NOT_MINE;
    int32_t end = (int32_t)(array->values.size / unit);
    memcpy(array->offsets.data + array->offsets.size, &end, sizeof end);
    array->offsets.size += sizeof end;
    return DONE;
}

static Status fill_words(const Tile *tile, const Column *column, Array *array)
{
    Status status = DONE;
    for (size_t i = tile->start; status == DONE && i < tile->end; i++) {
        const uint8_t *row = tile_row(tile, i);
        const char *word = row[column->presence] ? WORDS[row[column->value]] : "";
        status = append_bytes(array, word, strlen(word), 1);
    }
    return status;
}

static Status fill_spans(const Tile *tile, const Column *column, Array *array, size_t unit)
{
    Status status = DONE;
    for (size_t i = tile->start; status == DONE && i < tile->end; i++) {
        Span span;
        memcpy(&span, tile_row(tile, i) + column->value, sizeof span);
        status = append_bytes(array, span.size ? tile->heap + span.at : NULL, span.size, unit);
    }
    return status;
}

static Status fill_column(const Tile *tile, const Column *column, Array *array)
{
    fill_validity(tile, column, array);
    switch (column->kind) {
    case KIND_bool:
        fill_bools(tile, column, array);
        return DONE;
    case KIND_int8:
        fill_fixed(tile, column, array, 1);
        return DONE;
    case KIND_int32:
        fill_fixed(tile, column, array, 4);
        return DONE;
    case KIND_int64:
    case KIND_time:
        fill_fixed(tile, column, array, 8);
        return DONE;
    case KIND_hash:
        fill_fixed(tile, column, array, HASH_BYTES);
        return DONE;
    case KIND_amount:
        fill_fixed(tile, column, array, sizeof(Amount));
        return DONE;
    case KIND_text:
        return fill_words(tile, column, array);
    case KIND_hashes:
        return fill_spans(tile, column, array, HASH_BYTES);
    default:
        return fill_spans(tile, column, array, 1);
    }
}

Status table_fill(const Table *table, TableName name, const uint32_t *order, Array *arrays)
{
    const Layout *layout = &LAYOUTS[name];
    if (!table->count)
        return DONE;
    for (size_t c = 0; c < layout->column_count; c++)
        if (!prepare(&arrays[c], layout->columns[c].kind, table->count))
            return NO_MEMORY;
    for (size_t start = 0; start < table->count; start += TILE_ROWS) {
        size_t end = start + TILE_ROWS < table->count ? start + TILE_ROWS : table->count;
        Tile tile = {table->rows, layout->row_bytes, order, table->heap.data, start, end};
        for (size_t c = 0; c < layout->column_count; c++) {
            Status status = fill_column(&tile, &layout->columns[c], &arrays[c]);
            if (status != DONE)
                return status;
        }
    }
    return DONE;
}

void array_free(Array *array)
{
    heap_free(&array->validity);
    heap_free(&array->values);
    heap_free(&array->offsets);
}
