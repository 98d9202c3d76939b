/* Traces: the tree of transactions, their order, and the transactions themselves. */
#ifndef TONLAKE_API_TRACE_H
#define TONLAKE_API_TRACE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Write the records of a trace. Arguments include two lists in the same order: the records, and the
 * hashes of the transactions that sent their incoming messages, or None. Return a tuple of three JSON
 * texts: tree, order, and transactions by hash. Accounts for the address book are added to a set. */
PyObject *write_trace(PyObject *self, PyObject *args);

#endif
