/* Rows of a column within a bound. */
#ifndef TONLAKE_INDEX_ROWGROUP_FIND_H
#define TONLAKE_INDEX_ROWGROUP_FIND_H

#include "column.h"

/* What a column is compared with: some values in order, or all between two. */
typedef struct {
    bool is_range;
    Py_ssize_t count;
    int64_t *numbers; /* for FLAG and NUMBER */
    Span *spans;      /* for the others; the texts are those of the objects */
    uint64_t begins[4]; /* a bit for each first byte of spans: most others need no comparison */
} Bound;

/* Take a list of values, in order, for a column; false with an error where they do not fit it. */
bool open_bound(Bound *bound, const Column *column, PyObject *values, bool is_range);

void close_bound(Bound *bound);

/* Return whether a value is within a bound; NULL is within none. */
bool fits(const Column *column, const Bound *bound, int64_t at);

#endif
