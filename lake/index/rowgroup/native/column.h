/* Columns of a decoded row group, in Arrow's memory. */
#ifndef TONLAKE_INDEX_ROWGROUP_COLUMN_H
#define TONLAKE_INDEX_ROWGROUP_COLUMN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../../cdata.h"

/* OTHER: amounts, times and unknown types; Arrow converts their values. */
typedef enum { FLAG, NUMBER, FIXED_BYTES, BYTES, TEXT, LIST, OTHER } ColumnKind;

typedef struct Column Column;

struct Column {
    ColumnKind kind;
    int64_t width;          /* bytes of a number, or of a value of FIXED_BYTES */
    int64_t length, offset; /* number of values, and the offset of the first */
    const uint8_t *valid;   /* validity bitmap; NULL: no NULLs */
    const uint8_t *data;
    const int32_t *ends;    /* offsets of BYTES, TEXT and LIST, one more than values */
    Column *items;          /* of LIST */
    PyObject *arrow;        /* of OTHER: the column as an object of Arrow */
};

typedef struct {
    const uint8_t *data;
    int64_t size;
} Span;

/* Open a column as described by Arrow; false with an error if memory runs out. */
bool open_column(Column *column, const struct ArrowSchema *schema, const struct ArrowArray *array);

void close_column(Column *column);

/* Return a value as a Python object, None for NULL. */
PyObject *read_value(const Column *column, int64_t at);

static inline bool is_there(const Column *column, int64_t at)
{
    at += column->offset;
    return !column->valid || column->valid[at >> 3] >> (at & 7) & 1;
}

static inline bool flag_at(const Column *column, int64_t at)
{
    at += column->offset;
    return column->data[at >> 3] >> (at & 7) & 1;
}

/* A value of NUMBER. */
static inline int64_t number_at(const Column *column, int64_t at)
{
    int64_t whole;
    int32_t half;
    const uint8_t *data = column->data + (at + column->offset) * column->width;
    switch (column->width) {
    case sizeof whole:
        memcpy(&whole, data, sizeof whole);
        return whole;
    case sizeof half:
        memcpy(&half, data, sizeof half);
        return half;
    default:
        return *(const int8_t *)data;
    }
}

/* A value of FIXED_BYTES, BYTES or TEXT. */
static inline Span span_at(const Column *column, int64_t at)
{
    at += column->offset;
    if (column->kind == FIXED_BYTES)
        return (Span){column->data + at * column->width, column->width};
    return (Span){column->data + column->ends[at], column->ends[at + 1] - column->ends[at]};
}

#endif
