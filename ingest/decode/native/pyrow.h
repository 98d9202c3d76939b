/* Rows passed from Python: tuples of some columns of a table. */
#ifndef TONLAKE_PYROW_H
#define TONLAKE_PYROW_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rebuild.h"

/* rebuild(row, messages, seed) */
PyObject *rebuild_from_rows(PyObject *args, const Sha256 *sha);

/* rebuild_columns() */
PyObject *list_rebuild_columns(PyObject *module, PyObject *args);

#endif
