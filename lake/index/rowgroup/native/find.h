/* Finds the rows of a column within a bound. */
#ifndef TONLAKE_INDEX_ROWGROUP_FIND_H
#define TONLAKE_INDEX_ROWGROUP_FIND_H

#include "column.h"

/* A bound: sorted values, any of which matches, or a least and a greatest one. */
typedef struct {
    bool is_range;
    Py_ssize_t count;
    int64_t *numbers; /* for FLAG and NUMBER */
    Span *spans;      /* for the others; the Python objects own the bytes */
    uint64_t begins[4]; /* a bit for each first byte of spans, which excludes most other values */
} Bound;

/* Parse a sorted list of values for a column; false with an error if they do not fit it. */
bool open_bound(Bound *bound, const Column *column, PyObject *values, bool is_range);

void close_bound(Bound *bound);

/* Return whether a value is within a bound; NULL never is. */
bool fits(const Column *column, const Bound *bound, int64_t at);

#endif
