/* Python functions that write rows and records as JSON. */
#ifndef TONLAKE_API_ROWS_H
#define TONLAKE_API_ROWS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Return the first of a tuple of rows as JSON; the others are its sources. */
PyObject *write_row(PyObject *self, PyObject *args);

/* Return a list of records as JSON, one text each, and add the accounts for the address book to a
 * set. */
PyObject *write_records(PyObject *self, PyObject *args);

#endif
