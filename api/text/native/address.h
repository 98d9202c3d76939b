/* Addresses in their friendly form. */
#ifndef TONLAKE_API_ADDRESS_H
#define TONLAKE_API_ADDRESS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

enum { ACCOUNT_BYTES = 32, FRIENDLY_CHARS = 48 };

/* Whether a workchain fits the 8 bits that it has in a friendly address. */
static inline int has_friendly(long long workchain)
{
    return workchain >= INT8_MIN && workchain <= INT8_MAX;
}

/* Write an address as 48 characters: tag, workchain, 32 bytes of account. */
void format_friendly(char *to, int tag, int workchain, const uint8_t *account);

/* The same for Python; an error where the parts have no such form. */
PyObject *write_friendly(PyObject *self, PyObject *args);

#endif
