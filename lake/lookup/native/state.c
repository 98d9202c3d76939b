/* States: those before and after a transaction, and the newest ones of accounts. */
#include "rows.h"

enum { NO_STATE, SAME_STATE, SHAPED };

PyObject *read_state(Source *source, Cursor *cursor, Context *context, bool *same)
{
    Cursor ahead = *cursor;
    uint64_t form;
    if (!read_number(&ahead, &form))
        return NULL;
    if (form == NO_STATE || form == SAME_STATE) {
        *cursor = ahead;
        *same = form == SAME_STATE;
        return Py_NewRef(Py_None);
    }
    Shape *shape = read_shape(source, cursor, SHAPED, FACTS);
    return shape ? (PyObject *)read_row(source, cursor, context, shape) : NULL;
}

bool skip_state(Source *source, Cursor *cursor)
{
    Cursor ahead = *cursor;
    uint64_t form;
    if (!read_number(&ahead, &form))
        return false;
    if (form < SHAPED) {
        *cursor = ahead;
        return true;
    }
    Shape *shape = read_shape(source, cursor, SHAPED, FACTS);
    return shape && skip_row(source, cursor, NULL, shape, NULL);
}

PyObject *read_newest(Source *source, Context *context, int64_t number)
{
    const uint8_t *start = item_at(source, STATE_AT, number, 8);
    const uint8_t *stop = item_at(source, STATE_AT, number + 1, 8);
    const uint8_t *row = item_at(source, ACCOUNT_ROW, number, 4);
    const uint8_t *end = item_at(source, ACCOUNT_ROW, number + 1, 4);
    if (!start || !stop || !row || !end)
        return NULL;
    int64_t first = load_i64(start), last = load_i64(stop);
    context->row = load_u32(row) < load_u32(end) ? load_u32(end) : 0;
    const uint8_t *lt = context->row ? item_at(source, LT, context->row - 1, 8) : NULL;
    if (context->row && !lt)
        return NULL;
    context->lt = lt ? load_i64(lt) : 0;
    if (first == last)
        return Py_NewRef(Py_None);
    const Py_buffer *states = &source->arrays[STATES];
    if (first < 0 || last < first || last > states->len) {
        PyErr_SetString(PyExc_ValueError, "the states of the run are damaged");
        return NULL;
    }
    const uint8_t *data = states->buf;
    Cursor cursor = {data + first, data + last};
    Shape *shape = read_shape(source, &cursor, 0, STATE);
    return shape ? (PyObject *)read_row(source, &cursor, context, shape) : NULL;
}
