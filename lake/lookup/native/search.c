/* Keys among the sorted keys of postings, and the rows of messages that stand there. */
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

/* Where the rows of each key end, where there are several; the rows; their logical times. */
typedef struct {
    Py_buffer keys, ends, rows, times;
} Ends;

static bool read_u32(const Py_buffer *view, Py_ssize_t at, uint32_t *value)
{
    if (at < 0 || at >= view->len / 4) {
        PyErr_SetString(PyExc_ValueError, "a place is outside of its array");
        return false;
    }
    memcpy(value, (const uint8_t *)view->buf + 4 * at, sizeof *value);
    return true;
}

/* Find where the rows of a key begin and end. */
static bool find_span(const Ends *ends, Py_ssize_t at, uint32_t *start, uint32_t *stop)
{
    *start = (uint32_t)at;
    *stop = (uint32_t)at + 1;
    if (!ends->ends.buf)
        return true;
    *start = 0;
    return (!at || read_u32(&ends->ends, at - 1, start)) && read_u32(&ends->ends, at, stop);
}

/* Add (number, row) for each row of a hash that is of another time. */
static bool add_others(const Ends *ends, const uint8_t *hash, int64_t own_time, Py_ssize_t number,
                       PyObject *found)
{
    Py_ssize_t at = find_place(ends->keys.buf, ends->keys.len / KEY_BYTES, cut_hash(hash));
    uint32_t start, stop, row;
    if (at < 0)
        return true;
    if (!find_span(ends, at, &start, &stop))
        return false;
    for (; start < stop; start++) {
        int64_t time;
        if (!read_u32(&ends->rows, start, &row))
            return false;
        if (row >= ends->times.len / (Py_ssize_t)sizeof time) {
            PyErr_SetString(PyExc_ValueError, "a row is outside of its array");
            return false;
        }
        memcpy(&time, (const uint8_t *)ends->times.buf + row * sizeof time, sizeof time);
        if (time == own_time)
            continue;
        PyObject *other = Py_BuildValue("nI", number, row);
        bool added = other && PyList_Append(found, other) == 0;
        Py_XDECREF(other);
        if (!added)
            return false;
    }
    return true;
}

PyObject *find_others(PyObject *self, PyObject *args)
{
    Ends ends = {0};
    PyObject *hashes, *times;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*z*y*y*O!O!:find_others", &ends.keys, &ends.ends, &ends.rows,
                          &ends.times, &PyList_Type, &hashes, &PyList_Type, &times))
        return NULL;
    Py_ssize_t count = PyList_Size(hashes);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at < count; at++) {
        char *hash;
        Py_ssize_t size;
        PyObject *item = PyList_GetItem(times, at);
        long long time = item ? PyLong_AsLongLong(item) : -1;
        bool is_sound = !PyErr_Occurred() &&
                        PyBytes_AsStringAndSize(PyList_GetItem(hashes, at), &hash, &size) == 0;
        if (is_sound && size < KEY_BYTES) {
            PyErr_SetString(PyExc_ValueError, "a hash is longer than its key");
            is_sound = false;
        }
        if (!is_sound || !add_others(&ends, (const uint8_t *)hash, time, at, found))
            Py_CLEAR(found);
    }
    PyBuffer_Release(&ends.keys);
    PyBuffer_Release(&ends.ends);
    PyBuffer_Release(&ends.rows);
    PyBuffer_Release(&ends.times);
    return found;
}
