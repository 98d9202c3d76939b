/* CRC-32C (Castagnoli), one byte at a time, with a table made at the start. */
#include "crc32c.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u
enum { BYTES = 256 };

static uint32_t TABLE[BYTES];

void fill_crc32c(void)
{
    for (uint32_t byte = 0; byte < BYTES; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        TABLE[byte] = crc;
    }
}

static uint32_t crc32c(const uint8_t *data, size_t size)
{
    uint32_t crc = ~0u;
    for (size_t at = 0; at < size; at++)
        crc = crc >> 8 ^ TABLE[(crc ^ data[at]) & 0xff];
    return ~crc;
}

uint8_t *copy_closed(const uint8_t *bag, size_t size)
{
    if (size <= FLAGS_AT || size > PY_SSIZE_T_MAX - CRC_BYTES) {
        PyErr_Format(PyExc_ValueError, "%zu bytes are not a bag of cells", size);
        return NULL;
    }
    uint8_t *copy = PyMem_Malloc(size + CRC_BYTES);
    if (!copy) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(copy, bag, size);
    copy[FLAGS_AT] |= HAS_CRC32C;
    uint32_t crc = crc32c(copy, size);
    for (int at = 0; at < CRC_BYTES; at++)
        copy[size + (size_t)at] = (uint8_t)(crc >> 8 * at);
    return copy;
}

PyObject *add_crc32c(PyObject *self, PyObject *bag)
{
    (void)self;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bag, &data, &size) < 0)
        return NULL;
    uint8_t *closed = copy_closed((const uint8_t *)data, (size_t)size);
    PyObject *result =
        closed ? PyBytes_FromStringAndSize((const char *)closed, size + CRC_BYTES) : NULL;
    PyMem_Free(closed);
    return result;
}
