/* From rows to the buffers of Arrow. Rows are taken in tiles that stay in the cache while one
   column after the other is read out of them. */
#include "table.h"

#define TILE_ROWS 32
#define MAX_WORD_BYTES 16

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

/* Bytes that the spans of a column take together. */
static size_t measure_spans(const Table *table, size_t row_bytes, const Column *column)
{
    size_t total = 0;
    for (size_t i = 0; i < table->count; i++) {
        Span span;
        memcpy(&span, table->rows + i * row_bytes + column->value, sizeof span);
        total += span.size;
    }
    return total;
}

static bool is_span(Kind kind)
{
    return kind == KIND_bytes || kind == KIND_json || kind == KIND_hashes;
}

/* Allocate what the number of rows decides; bit maps begin as zeroes. */
static bool prepare(Array *array, const Column *column, const Table *table, size_t row_bytes)
{
    Kind kind = column->kind;
    size_t rows = table->count, map_bytes = (rows + 7) / 8, bytes = kind_bytes(kind) * rows;
    bool has_offsets = false;
    if (kind == KIND_bool) {
        bytes = map_bytes;
    } else if (!kind_bytes(kind)) {
        has_offsets = true;
        /* Arrow wants a buffer even where all values are empty. */
        bytes = 1 + (is_span(kind) ? measure_spans(table, row_bytes, column) : 0);
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

/* Put the end of the bytes so far behind the other offsets, for which there is room. */
static Status end_value(Array *array, size_t unit)
{
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
    if (!heap_reserve(&array->values, (tile->end - tile->start) * MAX_WORD_BYTES))
        return NO_MEMORY;
    for (size_t i = tile->start; status == DONE && i < tile->end; i++) {
        const uint8_t *row = tile_row(tile, i);
        const char *word = row[column->presence] ? WORDS[row[column->value]] : "";
        size_t size = strlen(word);
        memcpy(array->values.data + array->values.size, word, size);
        array->values.size += size;
        status = end_value(array, 1);
    }
    return status;
}

static Status fill_spans(const Tile *tile, const Column *column, Array *array, size_t unit)
{
    Status status = DONE;
    for (size_t i = tile->start; status == DONE && i < tile->end; i++) {
        Span span;
        memcpy(&span, tile_row(tile, i) + column->value, sizeof span);
        if (span.size && !heap_append(&array->values, tile->heap + span.at, span.size))
            return NO_MEMORY;
        status = end_value(array, unit);
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
        if (!prepare(&arrays[c], &layout->columns[c], table, layout->row_bytes))
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
