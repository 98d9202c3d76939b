/* CRC-32C, the checksum of bags of cells. */
#ifndef TONLAKE_API_CRC32C_H
#define TONLAKE_API_CRC32C_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>

enum { CRC_BYTES = 4, FLAGS_AT = 4, HAS_CRC32C = 0x40 };

/* Make the table of checksums; called once. */
void fill_crc32c(void);

/* Return a bag of cells with its checksum flag set and the checksum (little-endian) appended. */
PyObject *add_crc32c(PyObject *self, PyObject *bag);

/* As add_crc32c, but return memory that PyMem_Free frees; NULL on error. */
uint8_t *copy_closed(const uint8_t *bag, size_t size);

#endif
