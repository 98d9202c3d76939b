/* Cells of whole states for Python: from celldb, and from bags that are larger than memory. */
#ifndef TONLAKE_PACKED_H
#define TONLAKE_PACKED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "branch.h"

/* pack_records(keys, values) */
PyObject *pack_records(PyObject *args);

/* list_below(packed, width, known) */
PyObject *list_below(PyObject *args);

/* find_starts(data, first, end, ref_bytes, starts) */
PyObject *find_starts(PyObject *args);

/* digest_cells(data, starts, ref_bytes, digests, before) */
PyObject *digest_cells(PyObject *args);

/* read_cells(data, starts, ref_bytes, handles) */
PyObject *read_cells(PyObject *args);

/* Return cells passed from Python in tuples; NULL, with an error set, for anything else. */
PackedCell *take_packed(PyObject *keys, PyObject *values, unsigned width);

#endif
