/* Rows of tables to JSON. */
#ifndef TONLAKE_API_WRITER_H
#define TONLAKE_API_WRITER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Write the first of a tuple of rows; the others are its sources. */
PyObject *write_row(PyObject *self, PyObject *args);

/* Write a list of records one by one, each taken apart into such a tuple, and add the accounts for
 * the address book to a set. */
PyObject *write_records(PyObject *self, PyObject *args);

#endif
