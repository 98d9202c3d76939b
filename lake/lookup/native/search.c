/* Keys among the sorted keys of postings. */
#include "rows.h"

#define KEY_BYTES 8

static uint64_t cut_hash(const uint8_t *hash)
{
    uint64_t key = 0;
    for (int at = 0; at < KEY_BYTES; at++)
        key = key << 8 | hash[at];
    return key;
}

static uint64_t key_at(const uint8_t *keys, Py_ssize_t at)
{
    uint64_t key;
    memcpy(&key, keys + at * KEY_BYTES, sizeof key);
    return key;
}

/* Return the place of a key, or -1. */
static Py_ssize_t find_place(const uint8_t *keys, Py_ssize_t count, uint64_t wanted)
{
    Py_ssize_t low = 0, high = count;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (key_at(keys, middle) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && key_at(keys, low) == wanted ? low : -1;
}

PyObject *find_places(PyObject *self, PyObject *args)
{
    Py_buffer keys;
    PyObject *hashes;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*O!:find_places", &keys, &PyList_Type, &hashes))
        return NULL;
    Py_ssize_t count = PyList_Size(hashes);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t at = 0; found && at < count; at++) {
        char *hash;
        Py_ssize_t size;
        PyObject *place = NULL;
        if (PyBytes_AsStringAndSize(PyList_GetItem(hashes, at), &hash, &size) == 0) {
            if (size < KEY_BYTES)
                PyErr_SetString(PyExc_ValueError, "a hash is longer than its key");
            else
                place = PyLong_FromSsize_t(
                    find_place(keys.buf, keys.len / KEY_BYTES, cut_hash((const uint8_t *)hash)));
        }
        if (!place || PyList_SetItem(found, at, place) < 0)
            Py_CLEAR(found);
    }
    PyBuffer_Release(&keys);
    return found;
}
