/* Bags of cells for Python, as flat arrays of cells, links, depths and hashes. */
#ifndef TONLAKE_CELLS_H
#define TONLAKE_CELLS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tree.h"

/* parse(data, check_crc) */
PyObject *parse_cells(PyObject *data, bool check_crc);

/* hashes(data) */
PyObject *hash_cells(PyObject *data);

/* bags(data, rests, seed) */
PyObject *write_bags(PyObject *args);

#endif
