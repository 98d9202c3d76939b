/* The functions that write JSON for Python. */
#ifndef TONLAKE_API_MODULE_H
#define TONLAKE_API_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Make the table of checksums; called once. */
void fill_crc32c(void);

/* Return a bag of cells with its checksum. */
PyObject *add_crc32c(PyObject *self, PyObject *bag);

/* Return a capsule with a layout compiled from a tuple of fields. */
PyObject *compile_layout(PyObject *self, PyObject *fields);

/* Return the first of a tuple of rows as JSON; the others are its sources. */
PyObject *write_row(PyObject *self, PyObject *args);

/* Return a list of records as JSON, one text each, and add the accounts for the address book to a
 * set. */
PyObject *write_records(PyObject *self, PyObject *args);

/* Return the user-friendly address of a tag, workchain and account; ValueError if it has none. */
PyObject *write_friendly(PyObject *self, PyObject *args);

/* Write an object of address book rows by raw address.
 *
 * Arguments: list of pairs (workchain, account); list of the same length with pairs (tag byte of the
 * friendly address, JSON of the interfaces); dict of domains, as JSON, by account pair.
 */
PyObject *write_book(PyObject *self, PyObject *args);

#endif
