/* Reads messages of records: all, the one at a place, or the one with a hash. */
#include "rows.h"

/* Read the next message; hash and logical time of its transaction come from the arrays. */
static Row *read_message(Source *source, Cursor *cursor, Context *context)
{
    Shape *shape = read_shape(source, cursor, 0, MESSAGE);
    Row *row = shape ? read_row(source, cursor, context, shape) : NULL;
    if (row && shape->count + 2 <= row->count) {
        row->values[shape->count + 1] = number_value(context->lt);
        if (!find_hash(source, HASH, context->row, &row->values[shape->count]))
            Py_CLEAR(row);
    }
    return row;
}

PyObject *read_messages(Source *source, Cursor *cursor, Context *context)
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
        Row *message = read_message(source, cursor, context);
        if (!message || PyList_SetItem(messages, (Py_ssize_t)at, (PyObject *)message) < 0)
            Py_CLEAR(messages);
    }
    return messages;
}

bool open_messages(Source *source, Context *context, int64_t number, Cursor *cursor,
                   uint64_t *count)
{
    if (!find_record(source, context, number, cursor) || !skip_state(source, cursor) ||
        !skip_state(source, cursor))
        return false;
    Shape *shape = read_shape(source, cursor, 0, TRANSACTION);
    Cursor columns = *cursor;
    return shape &&
           find_column(source, &columns, context, shape, source->in_hash_at, &context->in_hash) &&
           skip_row(source, cursor, shape) && read_number(cursor, count);
}

static bool skip_message(Source *source, Cursor *cursor)
{
    Shape *shape = read_shape(source, cursor, 0, MESSAGE);
    return shape && skip_row(source, cursor, shape);
}

/* Compare the hash of the next message: 1 equal, 0 different, -1 an error. */
static int compare_hash(Source *source, Cursor cursor, Context *context, PyObject *hash)
{
    Value own;
    const uint8_t *data;
    size_t size;
    Shape *shape = read_shape(source, &cursor, 0, MESSAGE);
    if (!shape || !find_column(source, &cursor, context, shape, source->message_hash_at, &own) ||
        !find_held_bytes(&own, &data, &size))
        return -1;
    return size == (size_t)PyBytes_Size(hash) && !memcmp(data, PyBytes_AsString(hash), size);
}

/* Skip to the message at a place, of count. */
static bool find_place(Source *source, PyObject *key, uint64_t count, Cursor *cursor)
{
    long long place = PyLong_AsLongLong(key);
    if (PyErr_Occurred())
        return false;
    if (place < 0 || (uint64_t)place >= count) {
        PyErr_SetString(PyExc_ValueError, "a record of the segment lacks a message");
        return false;
    }
    for (int64_t at = 0; at < place; at++)
        if (!skip_message(source, cursor))
            return false;
    return true;
}

bool find_message(Source *source, Context *context, int64_t number, PyObject *key, Cursor *cursor,
                  bool *found)
{
    uint64_t count;
    *found = false;
    if (!open_messages(source, context, number, cursor, &count))
        return false;
    if (!PyBytes_Check(key))
        return *found = find_place(source, key, count, cursor);
    for (uint64_t at = 0; at < count; at++) {
        int same = compare_hash(source, *cursor, context, key);
        if (same)
            return *found = same > 0;
        if (!skip_message(source, cursor))
            return false;
    }
    return true;
}

PyObject *read_one(Source *source, Context *context, int64_t number, PyObject *key)
{
    Cursor cursor;
    bool found;
    if (!find_message(source, context, number, key, &cursor, &found))
        return NULL;
    return found ? (PyObject *)read_message(source, &cursor, context) : Py_NewRef(Py_None);
}
