/* User-friendly addresses (TEP-2). */
#ifndef TONLAKE_API_ADDRESS_H
#define TONLAKE_API_ADDRESS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

enum { ACCOUNT_BYTES = 32, FRIENDLY_CHARS = 48 };

/* Whether a workchain fits in the 8 bits of a user-friendly address. */
static inline int has_friendly(long long workchain)
{
    return workchain >= INT8_MIN && workchain <= INT8_MAX;
}

/* Write a user-friendly address (48 characters) to `to`. */
void format_friendly(char *to, int tag, int workchain, const uint8_t *account);

/* Python wrapper of format_friendly; ValueError if the parts do not fit. */
PyObject *write_friendly(PyObject *self, PyObject *args);

#endif
