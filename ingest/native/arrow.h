/* Tables as arrays of Arrow's C data interface, which Arrow takes over without copying. */
#ifndef TONLAKE_ARROW_H
#define TONLAKE_ARROW_H

#include "slab.h"
#include "table.h"

/* https://arrow.apache.org/docs/format/CDataInterface.html */
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

/* Make a struct array of a table's rows, a child per column, sorted as the schema says; NOT_MINE if
   a column exceeds 2 GiB. */
Status table_export(const Table *table, TableName name, Pool *pool, struct ArrowArray *to);

#endif
