/* Reads states: those before and after a transaction, and the newest ones of accounts. */
#include "rows.h"

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
    return shape && skip_row(source, cursor, shape);
}

PyObject *read_newest(Source *source, Context *context, int64_t number)
{
    int64_t first, last, row, end;
    if (!number_at(source, STATE_AT, number, &first) ||
        !number_at(source, STATE_AT, number + 1, &last) ||
        !number_at(source, ACCOUNT_ROW, number, &row) ||
        !number_at(source, ACCOUNT_ROW, number + 1, &end))
        return NULL;
    context->row = row < end ? end : 0;
    context->lt = context->lt_before = 0;
    if (context->row && !number_at(source, LT, context->row - 1, &context->lt))
        return NULL;
    if (first == last)
        return Py_NewRef(Py_None);
    const Py_buffer *states = &source->arrays[STATES];
    if (first < 0 || last < first || last > states->len) {
        PyErr_SetString(PyExc_ValueError, "the states of the segment are damaged");
        return NULL;
    }
    const uint8_t *data = states->buf;
    Cursor cursor = {data + first, data + last};
    Shape *shape = read_shape(source, &cursor, 0, STATE);
    Row *state = shape ? read_row(source, &cursor, context, shape) : NULL;
    if (state && shape->count + 2 <= state->count) {
        Value *values = state->values + shape->count;
        const uint8_t *account;
        int64_t workchain;
        if (!find_id(source, number, &account, &workchain)) {
            Py_DECREF(state);
            return NULL;
        }
        values[0] = number_value(workchain);
        values[1] = (Value){.data = account, .size = HASH_BYTES, .form = IS_BYTES};
    }
    return (PyObject *)state;
}
