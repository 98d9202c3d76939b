/* The address book of an answer. */
#ifndef TONLAKE_API_BOOK_H
#define TONLAKE_API_BOOK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Write an object of address book rows by raw address.
 *
 * Arguments: a list of pairs (workchain, account); a list as long of what is known of each, which
 * is a pair (tag byte of the friendly form, JSON of the interfaces); and a dict of domains, as JSON,
 * by pair.
 */
PyObject *write_book(PyObject *self, PyObject *args);

#endif
