/* The functions that write JSON for Python. */
#ifndef TONLAKE_API_MODULE_H
#define TONLAKE_API_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Return the first of a tuple of rows as JSON; the others are its sources. */
PyObject *write_row(PyObject *self, PyObject *args);

/* Return a list of records as JSON, one text each, and add the accounts for the address book to a
 * set. */
PyObject *write_records(PyObject *self, PyObject *args);

/* Write an object of address book rows by raw address.
 *
 * Arguments: list of pairs (workchain, account); list of the same length with pairs (tag byte of the
 * friendly address, JSON of the interfaces); dict of domains, as JSON, by account pair.
 */
PyObject *write_book(PyObject *self, PyObject *args);

#endif
