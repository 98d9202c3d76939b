/* The address book of a response. */
#ifndef TONLAKE_API_BOOK_H
#define TONLAKE_API_BOOK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Write an object of address book rows by raw address.
 *
 * Arguments: list of pairs (workchain, account); list of the same length with the newest row of each
 * or None; dict of pairs (tag byte of the friendly address, JSON of the interfaces) by code hash, with
 * None for no code; such a pair for accounts without a row; dict of domains, as JSON, by account pair.
 */
PyObject *write_book(PyObject *self, PyObject *args);

#endif
