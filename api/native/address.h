/* Addresses as people write them. */
#ifndef TONLAKE_API_ADDRESS_H
#define TONLAKE_API_ADDRESS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Write an address as 48 characters: tag, workchain, 32 bytes of account. */
PyObject *write_friendly(PyObject *self, PyObject *args);

#endif
