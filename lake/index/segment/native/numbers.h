/* Integers of a segment, packed: see module tonlake.lake.index.segment.file for the layout. */
#ifndef TONLAKE_NUMBERS_H
#define TONLAKE_NUMBERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *data;
    int64_t least, count;
    unsigned bits, cut_bits;
    const uint8_t *starts, *highs; /* of ascending numbers; highs is NULL without */
    uint64_t high_bytes;
} Packed;

/* Ascending numbers whose high parts are stored together; the first of a group is read fastest. */
#define GROUP 64

/* Return a place near the middle, the first of a group if possible. */
static inline int64_t middle_of(int64_t low, int64_t high)
{
    int64_t middle = low + (high - low) / 2, first = middle - middle % GROUP;
    return first > low ? first : middle;
}

/* Open packed numbers. */
bool open_packed(const Py_buffer *view, Packed *packed);

/* Return the high part of an ascending number: the bits above its low bits. */
uint64_t high_at(const Packed *packed, int64_t at);

/* Return the number at a place, which must be valid. */
static inline int64_t packed_at(const Packed *packed, int64_t at)
{
    uint64_t bit = (uint64_t)at * packed->bits, word;
    memcpy(&word, packed->data + bit / 8, sizeof word);
    word >>= bit % 8;
    if (packed->bits < 64)
        word &= ((uint64_t)1 << packed->bits) - 1;
    if (packed->highs)
        word |= high_at(packed, at) << packed->bits;
    return (int64_t)((uint64_t)packed->least + word);
}

/* Return the first place of a number among sorted ones, or -1; its low bits are ignored. */
int64_t find_packed(const Packed *packed, uint64_t key);

PyObject *pack_numbers(PyObject *self, PyObject *args);

extern PyType_Spec numbers_spec;

#endif
