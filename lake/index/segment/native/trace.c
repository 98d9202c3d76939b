/* Reads complete traces: the row of the root, and the columns. */
#include "rows.h"

/* Read the root of a trace: its row if the segment has it, else its hash. */
static bool take_root(Source *source, Cursor *cursor, Context *context, Value *hash)
{
    uint64_t root;
    if (!read_number(cursor, &root))
        return false;
    context->lt = context->now = 0;
    if (root) {
        int64_t row = root <= (uint64_t)source->rows ? (int64_t)root - 1 : -1;
        return number_at(source, LT, row, &context->lt) &&
               number_at(source, NOW, row, &context->now) && find_hash(source, HASH, row, hash);
    }
    if (cursor->end - cursor->at < HASH_BYTES) {
        PyErr_SetString(PyExc_ValueError, "a trace of the segment ends too early");
        return false;
    }
    *hash = (Value){.data = cursor->at, .size = HASH_BYTES, .form = IS_BYTES};
    cursor->at += HASH_BYTES;
    return true;
}

PyObject *read_trace(Source *source, Context *context, int64_t number)
{
    int64_t first, last;
    if (!number_at(source, ENDED_AT, number, &first) ||
        !number_at(source, ENDED_AT, number + 1, &last))
        return NULL;
    const Py_buffer *traces = &source->arrays[ENDED];
    if (first < 0 || last < first || last > traces->len) {
        PyErr_SetString(PyExc_ValueError, "the traces of the segment are damaged");
        return NULL;
    }
    const uint8_t *data = traces->buf;
    Cursor cursor = {data + first, data + last};
    Value root;
    if (!take_root(source, &cursor, context, &root))
        return NULL;
    context->lt_before = context->lt;
    context->row = 0;
    Shape *shape = read_shape(source, &cursor, 0, TRACE);
    Row *row = shape ? read_row(source, &cursor, context, shape) : NULL;
    if (row && shape->count < row->count)
        row->values[shape->count] = root;
    return (PyObject *)row;
}
