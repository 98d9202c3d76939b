/* Keys among the sorted keys of postings, and the rows of messages that stand there. */
#include "rows.h"

/* Where the rows of each key end, if keys are not repeated; the rows; their logical times. */
typedef struct {
    Packed keys, ends, rows, times;
    bool has_ends;
} Ends;

static bool read_number_at(const Packed *packed, int64_t at, int64_t *value)
{
    if (at < 0 || at >= packed->count) {
        PyErr_SetString(PyExc_ValueError, "a place is outside of its array");
        return false;
    }
    *value = packed_at(packed, at);
    return true;
}

/* Find where the rows of a key begin and end. */
static bool find_span(const Ends *ends, int64_t at, int64_t *start, int64_t *stop)
{
    if (!ends->has_ends) {
        int64_t key = packed_at(&ends->keys, at);
        for (*start = at; at < ends->keys.count && packed_at(&ends->keys, at) == key; at++)
            ;
        *stop = at;
        return true;
    }
    *start = 0;
    return (!at || read_number_at(&ends->ends, at - 1, start)) &&
           read_number_at(&ends->ends, at, stop);
}

/* Add (number, row) for each row of a hash that is of another time. */
static bool add_others(const Ends *ends, const uint8_t *hash, int64_t own_time, Py_ssize_t number,
                       PyObject *found)
{
    int64_t start, stop, row, time, at = find_packed(&ends->keys, cut_hash(hash));
    if (at < 0)
        return true;
    if (!find_span(ends, at, &start, &stop))
        return false;
    for (; start < stop; start++) {
        if (!read_number_at(&ends->rows, start, &row) || !read_number_at(&ends->times, row, &time))
            return false;
        if (time == own_time)
            continue;
        PyObject *other = Py_BuildValue("nL", number, (long long)row);
        bool added = other && PyList_Append(found, other) == 0;
        Py_XDECREF(other);
        if (!added)
            return false;
    }
    return true;
}

/* Find the rows of all hashes. */
static PyObject *list_others(const Ends *ends, PyObject *hashes, PyObject *times)
{
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
        if (!is_sound || !add_others(ends, (const uint8_t *)hash, time, at, found))
            Py_CLEAR(found);
    }
    return found;
}

PyObject *find_others(PyObject *self, PyObject *args)
{
    Ends ends = {.has_ends = false};
    Py_buffer views[4] = {0};
    PyObject *hashes, *times, *found = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*z*y*y*O!O!:find_others", &views[0], &views[1], &views[2],
                          &views[3], &PyList_Type, &hashes, &PyList_Type, &times))
        return NULL;
    ends.has_ends = views[1].buf != NULL;
    if (open_packed(&views[0], &ends.keys) && open_packed(&views[2], &ends.rows) &&
        open_packed(&views[3], &ends.times) &&
        (!ends.has_ends || open_packed(&views[1], &ends.ends)))
        found = list_others(&ends, hashes, times);
    for (int at = 0; at < 4; at++)
        PyBuffer_Release(&views[at]);
    return found;
}
