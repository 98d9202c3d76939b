/* Columns of numbers as Python objects: read from Python, and returned to it. */
#ifndef TONLAKE_WORDS_H
#define TONLAKE_WORDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "growing.h"

/* Return the appended items as a memoryview of 64-bit numbers, signed (q) or not (Q), or of bytes
   (B); the growing memory is freed. */
PyObject *hand_over(Growing *growing, char code);

PyObject *list_postings(PyObject *self, PyObject *args);
PyObject *group_keys(PyObject *self, PyObject *args);
PyObject *cut_keys(PyObject *self, PyObject *args);
PyObject *count_equal_bits(PyObject *self, PyObject *args);

#endif
