/* Reads messages of records: all, the one at a place, or the one with a hash. */
#include "rows.h"

static Row *read_message(Source *source, Cursor *cursor, Context *context, PyObject *hash,
                         PyObject *lt)
{
    Shape *shape = read_shape(source, cursor, 0, MESSAGE);
    Row *row = shape ? read_row(source, cursor, context, shape) : NULL;
    if (row && shape->count + 2 <= row->count) {
        row->values[shape->count] = Py_NewRef(hash);
        row->values[shape->count + 1] = Py_NewRef(lt);
    }
    return row;
}

PyObject *read_messages(Source *source, Cursor *cursor, Context *context, PyObject *hash,
                               PyObject *lt)
{
    uint64_t count;
    if (!read_number(cursor, &count))
        return NULL;
    if (count > (uint64_t)(cursor->end - cursor->at)) {
        PyErr_SetString(PyExc_ValueError, "a record of the segment has too few messages");
        return NULL;
    }
    PyObject *messages = PyList_New((Py_ssize_t)count);
    for (uint64_t at = 0; messages && at < count; at++) {
        Row *message = read_message(source, cursor, context, hash, lt);
        if (!message || PyList_SetItem(messages, (Py_ssize_t)at, (PyObject *)message) < 0)
            Py_CLEAR(messages);
    }
    return messages;
}

bool open_messages(Source *source, Context *context, int64_t number, Cursor *cursor,
                   PyObject **in_hash, uint64_t *count)
{
    if (!find_record(source, context, number, cursor) || !skip_state(source, cursor) ||
        !skip_state(source, cursor))
        return false;
    Shape *shape = read_shape(source, cursor, 0, TRANSACTION);
    return shape && skip_row(source, cursor, context, shape, in_hash) && read_number(cursor, count);
}

/* Read a message, and fill in the columns of its transaction. */
static PyObject *read_own_message(Source *source, Cursor *cursor, Context *context,
                                  PyObject *in_hash)
{
    PyObject *hash = read_hash(source, HASH, context->row);
    PyObject *lt = PyLong_FromLongLong(context->lt);
    Row *message = NULL;
    context->in_hash = in_hash;
    if (hash && lt)
        message = read_message(source, cursor, context, hash, lt);
    context->in_hash = NULL;
    Py_XDECREF(hash);
    Py_XDECREF(lt);
    return (PyObject *)message;
}

static bool skip_message(Source *source, Cursor *cursor, Context *context)
{
    Shape *shape = read_shape(source, cursor, 0, MESSAGE);
    return shape && skip_row(source, cursor, context, shape, NULL);
}

/* Compare the hash of the next message: 1 equal, 0 different, -1 an error. */
static int compare_hash(Source *source, Cursor cursor, Context *context, PyObject *in_hash,
                        PyObject *hash)
{
    Shape *shape = read_shape(source, &cursor, 0, MESSAGE);
    if (!shape)
        return -1;
    PyObject *own = read_column(source, &cursor, context, shape, source->message_hash_at, in_hash);
    int same = own ? PyObject_RichCompareBool(own, hash, Py_EQ) : -1;
    Py_XDECREF(own);
    return same;
}

/* Skip to the message at a place, of count. */
static bool find_place(Source *source, Context *context, PyObject *key, uint64_t count,
                       Cursor *cursor)
{
    long long place = PyLong_AsLongLong(key);
    if (PyErr_Occurred())
        return false;
    if (place < 0 || (uint64_t)place >= count) {
        PyErr_SetString(PyExc_ValueError, "a record of the segment lacks a message");
        return false;
    }
    for (int64_t at = 0; at < place; at++)
        if (!skip_message(source, cursor, context))
            return false;
    return true;
}

bool find_message(Source *source, Context *context, int64_t number, PyObject *key, Cursor *cursor,
                  PyObject **in_hash, bool *found)
{
    uint64_t count;
    *found = false;
    if (!open_messages(source, context, number, cursor, in_hash, &count))
        return false;
    if (!PyBytes_Check(key))
        return *found = find_place(source, context, key, count, cursor);
    for (uint64_t at = 0; at < count; at++) {
        int same = compare_hash(source, *cursor, context, *in_hash, key);
        if (same)
            return *found = same > 0;
        if (!skip_message(source, cursor, context))
            return false;
    }
    return true;
}

PyObject *read_one(Source *source, Context *context, int64_t number, PyObject *key)
{
    Cursor cursor;
    PyObject *in_hash = NULL, *message = NULL;
    bool found;
    if (find_message(source, context, number, key, &cursor, &in_hash, &found))
        message = found ? read_own_message(source, &cursor, context, in_hash) : Py_NewRef(Py_None);
    Py_XDECREF(in_hash);
    return message;
}
