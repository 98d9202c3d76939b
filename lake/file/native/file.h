/* Writes a record batch as a complete Parquet file: https://github.com/apache/parquet-format */
#ifndef TONLAKE_PARQUET_FILE_H
#define TONLAKE_PARQUET_FILE_H

#include "column.h"

/* The parts that all files of a table have in common. */
typedef struct {
    const uint8_t *head, *tail; /* the footer before the number of rows, and after the row
                                   groups */
    size_t head_size, tail_size;
    const uint8_t *bounded;     /* for each column, whether its bounds are written */
    size_t columns;
    const uint8_t *sorted;      /* indexes of the columns that rows are sorted by */
    size_t sorted_count;
} Plan;

enum { MAX_KEYS = 16 };

/* Find the sort order of at most MAX_LEVELS rows; equal rows keep their order. */
Status find_order(const struct ArrowSchema *schema, const struct ArrowArray *rows,
                  const Plan *plan, uint32_t *order);

/* Write the sorted rows as one row group, one page per column. */
Status write_file(const struct ArrowSchema *schema, const struct ArrowArray *rows,
                  const Plan *plan, Output *file);

#endif
