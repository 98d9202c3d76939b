/* A record batch as a complete Parquet file: https://github.com/apache/parquet-format */
#ifndef TONLAKE_PARQUET_FILE_H
#define TONLAKE_PARQUET_FILE_H

#include "column.h"

/* What is the same for all files of a table. */
typedef struct {
    const uint8_t *head, *tail; /* of the footer: what is before its number of rows, and behind its
                                   row groups */
    size_t head_size, tail_size;
    const uint8_t *bounded;     /* of each column, whether its least and greatest value are kept */
    size_t columns;
    const uint8_t *sorted;      /* numbers of the columns that rows are ordered by */
    size_t sorted_count;
} Plan;

enum { MOST_KEYS = 16 };

/* Find the order of rows, no more than MOST_LEVELS; equal ones keep that in which they came. */
Status find_order(const struct ArrowSchema *schema, const struct ArrowArray *rows,
                  const Plan *plan, uint32_t *order);

/* Write rows in order as one row group, a page for each column. */
Status write_file(const struct ArrowSchema *schema, const struct ArrowArray *rows,
                  const Plan *plan, Output *file);

#endif
