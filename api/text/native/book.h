/* The address book of an answer. */
#ifndef TONLAKE_API_BOOK_H
#define TONLAKE_API_BOOK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Write an object of address book rows by raw address.
 *
 * Arguments: a list of pairs (workchain, account); a list as long of the newest row of each, None
 * where none is known; a dict of what is known of codes by hash, and of None for no code, each a
 * pair (tag byte of the friendly form, JSON of the interfaces); such a pair for accounts without a
 * row; and a dict of domains, as JSON, by pair of account.
 */
PyObject *write_book(PyObject *self, PyObject *args);

#endif
