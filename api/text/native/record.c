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
        drop_column(&parts->parts[at]);
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
        parts->parts[at].name = Py_NewRef(named[at]);
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
        Value direction;
        if (read_column(PyList_GetItem(messages, 0), &parts->direction, 0, &direction) < 0)
            return -1;
        has_in = equals_object(&direction, parts->incoming);
        drop_value(&direction);
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
    Value hash;
    if (read_column(row, column, 0, &hash) < 0)
        return -1;
    int is_none = equals_object(&hash, parts->nonexist_hash);
    drop_value(&hash);
    if (is_none < 0)
        return -1;
    if (is_none || *state == Py_None) {
        Py_DECREF(*state);
        *state = Py_NewRef(is_none ? parts->nonexist : parts->unknown);
    }
    return 0;
}

/* Read a part of a record; records from SQL are named tuples. */
static PyObject *read_part(PyObject *record, Column *part)
{
    Value value;
    if (Py_TYPE(record) != part->type)
        learn_place(part, Py_TYPE(record));
    if (!part->offset)
        return PyObject_GetAttr(record, part->name);
    return read_column(record, part, 0, &value) < 0 ? NULL : make_object(&value);
}

void drop_record(PyObject *sources[RECORD_SOURCES])
{
    for (int at = 0; at < RECORD_SOURCES; at++)
        Py_XDECREF(sources[at]);
}

int take_record(RecordParts *parts, PyObject *record, PyObject *sources[RECORD_SOURCES])
{
    PyObject *found[PARTS] = {NULL}, *in = NULL, *out = NULL;
    int at = 0, failed = -1;
    while (at < PARTS && (found[at] = read_part(record, &parts->parts[at])))
        at++;
    if (at == PARTS && split_messages(parts, found[MESSAGES], &in, &out) == 0 &&
        settle_state(parts, found[ROW], &parts->hash_before, &found[BEFORE]) == 0 &&
        settle_state(parts, found[ROW], &parts->hash_after, &found[AFTER]) == 0)
        failed = 0;
    Py_XDECREF(found[MESSAGES]);
    sources[0] = found[ROW];
    sources[1] = in;
    sources[2] = out;
    sources[3] = found[BEFORE];
    sources[4] = found[AFTER];
    if (failed)
        drop_record(sources);
    return failed;
}
