/* Searches the sorted keys of postings for the rows of messages, and for the first rows by time. */
#include "rows.h"

/* The ends of each key's rows, if keys are not repeated; the rows; their logical times. */
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

/* Find the range of a key's rows. */
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

/* Append (number, row) for each row of a hash that has another time. */
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

/* A place of postings, and its sort key; ties are broken by place, so that a longer list begins with
   a shorter one. */
typedef struct {
    int64_t key, place;
} Ranked;

static bool is_after(const Ranked *first, const Ranked *second)
{
    return first->key != second->key ? first->key > second->key : first->place > second->place;
}

/* Sift down in a heap whose root comes last in the order. */
static void sink(Ranked *heap, Py_ssize_t count, Py_ssize_t at)
{
    Ranked moved = heap[at];
    for (Py_ssize_t below; (below = 2 * at + 1) < count; at = below) {
        if (below + 1 < count && is_after(&heap[below + 1], &heap[below]))
            below++;
        if (!is_after(&heap[below], &moved))
            break;
        heap[at] = heap[below];
    }
    heap[at] = moved;
}

/* The places to search: their range, and the times of their rows. */
typedef struct {
    long long start, end, first, last, most;
    int descending;
} Nearest;

/* Keep the first of some places by the times of their rows, in a heap with the last at its root;
   return their number, or -1: an error. */
static Py_ssize_t rank_places(const Packed *rows, const Packed *times, const Nearest *nearest,
                              Ranked *heap, Py_ssize_t room)
{
    Py_ssize_t count = 0;
    for (int64_t at = nearest->start; at < nearest->end; at++) {
        int64_t row, time;
        if (!read_number_at(rows, at, &row) || !read_number_at(times, row, &time))
            return -1;
        if (time < nearest->first || time > nearest->last)
            continue;
        Ranked ranked = {nearest->descending ? -time : time, at};
        if (count < room) {
            heap[count++] = ranked;
            for (Py_ssize_t top = count / 2; count == room && top-- > 0;)
                sink(heap, count, top);
        } else if (is_after(&heap[0], &ranked)) {
            heap[0] = ranked;
            sink(heap, count, 0);
        }
    }
    for (Py_ssize_t top = count / 2; count < room && top-- > 0;)
        sink(heap, count, top);
    return count;
}

static PyObject *list_ranked(Ranked *heap, Py_ssize_t count)
{
    PyObject *found = PyList_New(count);
    for (Py_ssize_t left = count; found && left > 0; left--) {
        PyObject *place = PyLong_FromLongLong(heap[0].place);
        if (!place || PyList_SetItem(found, left - 1, place) < 0)
            Py_CLEAR(found);
        heap[0] = heap[left - 1];
        sink(heap, left - 1, 0);
    }
    return found;
}

PyObject *list_nearest(PyObject *self, PyObject *args)
{
    Py_buffer views[2] = {0};
    Packed rows, times;
    Nearest nearest;
    PyObject *found = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*LLLLLp:list_nearest", &views[0], &views[1], &nearest.start,
                          &nearest.end, &nearest.first, &nearest.last, &nearest.most,
                          &nearest.descending))
        return NULL;
    long long places = nearest.end - nearest.start;
    Py_ssize_t room = (Py_ssize_t)(places < nearest.most ? places : nearest.most);
    Ranked *heap = room > 0 ? PyMem_Calloc((size_t)room, sizeof *heap) : NULL;
    if (room <= 0)
        found = PyList_New(0);
    else if (!heap)
        PyErr_NoMemory();
    else if (open_packed(&views[0], &rows) && open_packed(&views[1], &times)) {
        Py_ssize_t count = rank_places(&rows, &times, &nearest, heap, room);
        found = count < 0 ? NULL : list_ranked(heap, count);
    }
    PyMem_Free(heap);
    for (int at = 0; at < 2; at++)
        PyBuffer_Release(&views[at]);
    return found;
}
