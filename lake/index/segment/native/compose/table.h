/* Rows of a table from Arrow's C stream interface: requested columns, without copying. */
#ifndef TONLAKE_COMPOSE_TABLE_H
#define TONLAKE_COMPOSE_TABLE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../../../cdata.h"
#include "../format.h"
#include "map.h"

/* Layout of a column: bits, integers of 1, 4 or 8 bytes, bytes and text of varying
   length, hashes, whole numbers of 128 bits. */
typedef enum { BITS, INTEGER, VARYING, TEXT, HASH, AMOUNT } Form;

typedef struct {
    Form form;
    int width; /* bytes of an INTEGER */
} Column;

/* A column's values in one batch; the first is at `offset`. */
typedef struct {
    const uint8_t *valid; /* bits, or NULL */
    const uint8_t *data;
    const int32_t *ends; /* of TEXT and VARYING */
    int64_t offset;
} Cells;

typedef struct {
    struct ArrowArray array;
    Cells *cells; /* of each requested column */
} Batch;

typedef struct {
    Column *columns;
    int count;
    Batch *batches;
    size_t batch_count;
    size_t rows; /* of all batches */
} Table;

/* A row: the number of its batch, and its number in the batch. */
typedef struct {
    uint32_t batch, row;
} Place;

/* Open a table by its stream; a tuple names the columns. False with a Python error. */
bool table_open(Table *table, PyObject *source, PyObject *names);

/* Return the positions of all rows; NULL without memory. */
Place *table_places(const Table *table);

void table_close(Table *table);

static inline const Cells *cells_of(const Table *table, int column, Place place)
{
    return &table->batches[place.batch].cells[column];
}

static inline bool is_null(const Cells *cells, uint32_t row)
{
    int64_t at = cells->offset + row;
    return cells->valid && !(cells->valid[at >> 3] >> (at & 7) & 1);
}

static inline bool bit_of(const Cells *cells, uint32_t row)
{
    int64_t at = cells->offset + row;
    return cells->data[at >> 3] >> (at & 7) & 1;
}

static inline int64_t integer_of(const Cells *cells, int width, uint32_t row)
{
    int64_t at = cells->offset + row, wide;
    int32_t narrow;
    switch (width) {
    case 1:
        return (int8_t)cells->data[at];
    case 4:
        memcpy(&narrow, cells->data + at * 4, sizeof narrow);
        return narrow;
    default:
        memcpy(&wide, cells->data + at * 8, sizeof wide);
        return wide;
    }
}

static inline const uint8_t *hash_of(const Cells *cells, uint32_t row)
{
    return cells->data + (cells->offset + row) * HASH_BYTES;
}

/* The bytes of a hash, of text, or of varying bytes. */
static inline Bytes bytes_of(const Cells *cells, Form form, uint32_t row)
{
    if (form == HASH)
        return (Bytes){hash_of(cells, row), HASH_BYTES};
    int64_t at = cells->offset + row;
    return (Bytes){cells->data + cells->ends[at], (size_t)(cells->ends[at + 1] - cells->ends[at])};
}


static inline int64_t integer_at(const Table *table, int column, Place place)
{
    return integer_of(cells_of(table, column, place), table->columns[column].width, place.row);
}

static inline const uint8_t *hash_at(const Table *table, int column, Place place)
{
    return hash_of(cells_of(table, column, place), place.row);
}

static inline bool is_null_at(const Table *table, int column, Place place)
{
    return is_null(cells_of(table, column, place), place.row);
}

/* A column requested by name. */
typedef struct {
    const char *name;
    Form form;
    bool may_be_null;
} Asked;

/* Check that the first columns have the required forms, and values. False with a Python error. */
bool table_check(const Table *table, const Asked *asked, int count);

#endif
