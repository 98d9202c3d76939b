/* Splits records of transactions into the rows that a layout reads. */
#include "record.h"

static const char CAPSULE[] = "tonlake.api.text._json.record";

enum { ROW, MESSAGES, BEFORE, AFTER, PARTS };

static void free_record(PyObject *capsule)
{
    RecordParts *parts = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!parts)
        return;
    for (int at = 0; at < PARTS; at++)
        Py_XDECREF(parts->parts[at]);
    drop_column(&parts->hash);
    drop_column(&parts->message_hash);
    drop_column(&parts->direction);
    Py_XDECREF(parts->incoming);
    drop_column(&parts->hash_before);
    drop_column(&parts->hash_after);
    Py_XDECREF(parts->nonexist_hash);
    Py_XDECREF(parts->nonexist);
    Py_XDECREF(parts->unknown);
    PyMem_Free(parts);
}

PyObject *compile_record(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *named[PARTS], *own, *message, *direction, *before, *after, *incoming, *hash,
        *nonexist, *unknown;
    if (!PyArg_ParseTuple(args, "(UUUU)(UUUUU)USOO:compile_record", &named[ROW],
                          &named[MESSAGES], &named[BEFORE], &named[AFTER], &own, &message,
                          &direction, &before, &after, &incoming, &hash, &nonexist, &unknown))
        return NULL;
    RecordParts *parts = PyMem_Calloc(1, sizeof *parts);
    if (!parts)
        return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(parts, CAPSULE, free_record);
    if (!capsule) {
        PyMem_Free(parts);
        return NULL;
    }
    for (int at = 0; at < PARTS; at++)
        parts->parts[at] = Py_NewRef(named[at]);
    parts->hash.name = Py_NewRef(own);
    parts->message_hash.name = Py_NewRef(message);
    parts->direction.name = Py_NewRef(direction);
    parts->incoming = Py_NewRef(incoming);
    parts->hash_before.name = Py_NewRef(before);
    parts->hash_after.name = Py_NewRef(after);
    parts->nonexist_hash = Py_NewRef(hash);
    parts->nonexist = Py_NewRef(nonexist);
    parts->unknown = Py_NewRef(unknown);
    return capsule;
}

RecordParts *open_record(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

/* Split messages into the incoming one, or None, and a list of the outgoing ones. */
static int split_messages(RecordParts *parts, PyObject *messages, PyObject **in, PyObject **out)
{
    Py_ssize_t count = PyList_Size(messages);
    int has_in = 0;
    if (count > 0) {
        PyObject *direction = read_column(PyList_GetItem(messages, 0), &parts->direction, 0);
        if (!direction)
            return -1;
        has_in = PyObject_RichCompareBool(direction, parts->incoming, Py_EQ);
        Py_DECREF(direction);
    }
    if (count < 0 || has_in < 0)
        return -1;
    *in = Py_NewRef(has_in ? PyList_GetItem(messages, 0) : Py_None);
    *out = has_in ? PyList_GetSlice(messages, 1, count) : Py_NewRef(messages);
    return *out ? 0 : -1;
}

/* Replace a state that does not exist, or is unknown, by the row that stands for it. */
static int settle_state(RecordParts *parts, PyObject *row, Column *column, PyObject **state)
{
    PyObject *hash = read_column(row, column, 0);
    if (!hash)
        return -1;
    int is_none = PyObject_RichCompareBool(hash, parts->nonexist_hash, Py_EQ);
    Py_DECREF(hash);
    if (is_none < 0)
        return -1;
    if (is_none || *state == Py_None) {
        Py_DECREF(*state);
        *state = Py_NewRef(is_none ? parts->nonexist : parts->unknown);
    }
    return 0;
}

PyObject *take_record(RecordParts *parts, PyObject *record)
{
    PyObject *found[PARTS] = {NULL}, *in = NULL, *out = NULL, *taken = NULL;
    int at = 0;
    while (at < PARTS && (found[at] = PyObject_GetAttr(record, parts->parts[at])))
        at++;
    if (at == PARTS && split_messages(parts, found[MESSAGES], &in, &out) == 0 &&
        settle_state(parts, found[ROW], &parts->hash_before, &found[BEFORE]) == 0 &&
        settle_state(parts, found[ROW], &parts->hash_after, &found[AFTER]) == 0)
        taken = PyTuple_Pack(5, found[ROW], in, out, found[BEFORE], found[AFTER]);
    for (int part = 0; part < PARTS; part++)
        Py_XDECREF(found[part]);
    Py_XDECREF(in);
    Py_XDECREF(out);
    return taken;
}
