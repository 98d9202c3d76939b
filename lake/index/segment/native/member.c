/* The transactions of a trace, in order. */
#include "rows.h"

#include <stdlib.h>

/* The columns, as module record lists them. */
enum { TX_LT, TX_HASH, TRACE_ID, PARENT_HASH, SEGMENT, ROW, COLUMNS };

/* A row of the trace; the account is read only if another row has the same logical time. */
typedef struct {
    int64_t lt, row, workchain;
    const uint8_t *account;
} Place;

/* Order by logical time, then by workchain and account. */
static int compare_places(const void *one, const void *two)
{
    const Place *left = one, *right = two;
    if (left->lt != right->lt)
        return left->lt < right->lt ? -1 : 1;
    if (left->workchain != right->workchain)
        return left->workchain < right->workchain ? -1 : 1;
    return left->account && right->account ? memcmp(left->account, right->account, HASH_BYTES) : 0;
}

/* Sort places; read the accounts of those with equal logical times. */
static bool sort_places(Source *source, Place *places, Py_ssize_t count)
{
    Context context = {.first = 0, .last = 0};
    Cursor unused;
    qsort(places, (size_t)count, sizeof *places, compare_places);
    for (Py_ssize_t start = 0, end; start < count; start = end) {
        for (end = start + 1; end < count && places[end].lt == places[start].lt; end++)
            ;
        for (Py_ssize_t at = start; end - start > 1 && at < end; at++) {
            if (!find_record(source, &context, places[at].row, &unused))
                return false;
            places[at].workchain = context.workchain;
            places[at].account = context.account;
        }
        if (end - start > 1)
            qsort(places + start, (size_t)(end - start), sizeof *places, compare_places);
    }
    return true;
}

/* Check whether a row belongs to a trace; -1 on error. */
static int is_of_trace(Source *source, int64_t row, const char *trace_id)
{
    int64_t root;
    Value found;
    if (!number_at(source, ROOT, row, &root) || !find_linked(source, root, &found))
        return -1;
    return found.form == IS_BYTES && !memcmp(found.data, trace_id, HASH_BYTES);
}

/* Select the rows of a trace within a span of logical time; return their number, -1 on error. */
static Py_ssize_t find_places(Source *source, PyObject *rows, const char *trace_id,
                              const long long span[2], Place *places)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t at = 0; at < PyList_Size(rows); at++) {
        Place place = {.row = PyLong_AsLongLong(PyList_GetItem(rows, at))};
        if (PyErr_Occurred() || !number_at(source, LT, place.row, &place.lt))
            return -1;
        int fits = is_of_trace(source, place.row, trace_id);
        if (fits < 0)
            return -1;
        if (fits && span[0] <= place.lt && place.lt <= span[1])
            places[count++] = place;
    }
    return sort_places(source, places, count) ? count : -1;
}

static PyObject *make_member(Source *source, const Place *place, PyObject *trace_id,
                             PyObject *segment)
{
    int64_t parent;
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(source->types, KINDS + 2);
    Row *row = new_row(type, COLUMNS, 0, (PyObject *)source);
    if (!row)
        return NULL;
    row->values[TX_LT] = number_value(place->lt);
    row->values[ROW] = number_value(place->row);
    give_object(row, TRACE_ID, Py_NewRef(trace_id));
    give_object(row, SEGMENT, Py_NewRef(segment));
    if (!number_at(source, PARENT, place->row, &parent) ||
        !find_hash(source, HASH, place->row, &row->values[TX_HASH]) ||
        !find_linked(source, parent, &row->values[PARENT_HASH]))
        Py_CLEAR(row);
    return (PyObject *)row;
}

PyObject *list_members(PyObject *self, PyObject *args)
{
    Source *source = (Source *)self;
    PyObject *rows, *trace_id, *segment;
    long long span[2];
    if (!PyArg_ParseTuple(args, "O!SLLO:list_members", &PyList_Type, &rows, &trace_id, &span[0],
                          &span[1], &segment))
        return NULL;
    if (PyBytes_Size(trace_id) != HASH_BYTES)
        return PyErr_Format(PyExc_ValueError, "a trace id has %d bytes", HASH_BYTES);
    Place *places = PyMem_Calloc((size_t)PyList_Size(rows) + 1, sizeof *places);
    if (!places)
        return PyErr_NoMemory();
    Py_ssize_t count = find_places(source, rows, PyBytes_AsString(trace_id), span, places);
    PyObject *found = count < 0 ? NULL : PyList_New(count);
    for (Py_ssize_t at = 0; found && at < count; at++) {
        PyObject *member = make_member(source, &places[at], trace_id, segment);
        if (!member || PyList_SetItem(found, at, member) < 0)
            Py_CLEAR(found);
    }
    PyMem_Free(places);
    return found;
}
