/* Columns of Arrow's C data interface, and their levels and values in a Parquet page. */
#ifndef TONLAKE_PARQUET_COLUMN_H
#define TONLAKE_PARQUET_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cdata.h"
#include "output.h"

/* DECLINED: pyarrow has to write these rows, or report what is wrong with them. */
typedef enum { DONE, DECLINED, NO_MEMORY } Status;

/* Memory layout in Arrow: bits, one-byte numbers, fixed-width values, bytes of varying length,
   little-endian 128-bit numbers. */
typedef enum { BITS, TINY, FIXED, VARYING, AMOUNTS } Form;

/* Parquet's physical types. */
typedef enum { BOOLEAN = 0, INT32 = 1, INT64 = 2, BYTE_ARRAY = 6, FIXED_BYTES = 7 } Physical;

typedef struct {
    const struct ArrowArray *array;
    Form form;
    Physical physical;
    size_t width; /* bytes of a value in Arrow; 0 for BITS and VARYING */
    bool nullable;
} Values;

typedef struct {
    const char *name;
    Values values;                  /* of the rows, or of their lists */
    const struct ArrowArray *lists; /* NULL: not a list column */
    bool nullable_lists;
} Column;

/* pyarrow also takes up to this many levels at once, and starts no page among them. */
enum { MAX_LEVELS = 1024 };

/* Levels of a page, and the positions of its values in their array, without NULLs. */
typedef struct {
    size_t levels, count;
    bool adjoin; /* the values are contiguous in the array */
    uint8_t repeated[MAX_LEVELS], defined[MAX_LEVELS];
    int64_t places[MAX_LEVELS];
} Page;

/* The greatest levels of a column: how deep its values are nested. */
static inline unsigned max_repeated(const Column *column)
{
    return column->lists ? 1 : 0;
}

static inline unsigned max_defined(const Column *column)
{
    return (column->lists ? 1u + column->nullable_lists : 0) + column->values.nullable;
}

/* Open a child of a record batch. */
Status column_open(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t rows,
                   Column *column);

/* Find the levels and values of all rows, in `order`. */
Status column_read(const Column *column, const uint32_t *order, int64_t rows, Page *page);

/* Write the values of a page, plain; return the total bytes of those of varying length. */
uint64_t put_values(Output *output, const Values *values, const Page *page);

/* Write levels, none above `most`: their size in bytes, then their runs. */
void put_levels(Output *output, const uint8_t *levels, size_t count, unsigned most);

/* Return whether a row's value is present. */
static inline bool is_valid(const struct ArrowArray *array, int64_t row)
{
    const uint8_t *map = array->buffers[0];
    int64_t at = array->offset + row;
    return !map || (map[at >> 3] >> (at & 7) & 1);
}

/* Return the bytes of a value, not BITS; `place` is relative to the array's offset. */
static inline const uint8_t *value_at(const Values *values, int64_t place, size_t *size)
{
    const struct ArrowArray *array = values->array;
    int64_t at = array->offset + place;
    if (values->form != VARYING) {
        *size = values->width;
        return (const uint8_t *)array->buffers[1] + (size_t)at * values->width;
    }
    const int32_t *offsets = array->buffers[1];
    *size = (size_t)(offsets[at + 1] - offsets[at]);
    return (const uint8_t *)array->buffers[2] + offsets[at];
}

#endif
