/* Columns of Arrow's C data interface, and what a page of Parquet states of their rows. */
#ifndef TONLAKE_PARQUET_COLUMN_H
#define TONLAKE_PARQUET_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cdata.h"
#include "output.h"

/* DECLINED: these rows are left to pyarrow, which writes all kinds or reports what is wrong. */
typedef enum { DONE, DECLINED, NO_MEMORY } Status;

/* How values stand in Arrow: bits, numbers of a fixed number of bytes, bytes of varying
   length, numbers of 128 bits whose little end is first. */
typedef enum { BITS, TINY, FIXED, VARYING, AMOUNTS } Form;

/* Types of Parquet. */
typedef enum { BOOLEAN = 0, INT32 = 1, INT64 = 2, BYTE_ARRAY = 6, FIXED_BYTES = 7 } Physical;

typedef struct {
    const struct ArrowArray *array;
    Form form;
    Physical physical;
    size_t width; /* bytes of a value in Arrow, but for BITS and VARYING */
    bool nullable;
} Values;

typedef struct {
    const char *name;
    Values values;                  /* of the rows, or in their lists */
    const struct ArrowArray *lists; /* NULL: no lists */
    bool nullable_lists;
} Column;

/* pyarrow, too, takes up to this many levels at once, and begins no page among them. */
enum { MOST_LEVELS = 1024 };

/* Levels of a page, and where its values stand in their array, NULLs left out. */
typedef struct {
    size_t levels, count;
    bool adjoin; /* the values stand there one behind the other */
    uint8_t repeated[MOST_LEVELS], defined[MOST_LEVELS];
    int64_t places[MOST_LEVELS];
} Page;

/* The greatest levels of a column: how deep its values stand. */
static inline unsigned most_repeated(const Column *column)
{
    return column->lists ? 1 : 0;
}

static inline unsigned most_defined(const Column *column)
{
    return (column->lists ? 1u + column->nullable_lists : 0) + column->values.nullable;
}

/* Understand a child of a record batch. */
Status column_open(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t rows,
                   Column *column);

/* Find the levels and values of all rows in this order. */
Status column_read(const Column *column, const uint32_t *order, int64_t rows, Page *page);

/* Add the values of a page, plain; return how many bytes those of varying length have. */
uint64_t put_values(Output *output, const Values *values, const Page *page);

/* Add levels, which none above `most` is: how many bytes they have, and runs of them. */
void put_levels(Output *output, const uint8_t *levels, size_t count, unsigned most);

/* Return whether a row's value is present. */
static inline bool is_valid(const struct ArrowArray *array, int64_t row)
{
    const uint8_t *map = array->buffers[0];
    int64_t at = array->offset + row;
    return !map || (map[at >> 3] >> (at & 7) & 1);
}

/* The bytes of a value; `place` counts from the array's offset. BITS have none. */
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
