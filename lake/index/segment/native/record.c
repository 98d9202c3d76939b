/* Reads complete records of a segment: transactions, their messages, and the states around. */
#include "rows.h"

bool find_linked(Source *source, int64_t number, Value *value)
{
    *value = (Value){.form = IS_NONE};
    if (!number)
        return true;
    if (number <= source->rows)
        return find_hash(source, HASH, number - 1, value);
    return find_hash(source, OTHER, number - source->rows - 1, value);
}

static bool find_trace_id(Source *source, int64_t row, Value *value)
{
    int64_t root;
    return number_at(source, ROOT, row, &root) && find_linked(source, root, value);
}

/* Fill in the columns after those of the shape from the arrays, as listed in module record. */
static bool fill_transaction(Source *source, Row *row, Py_ssize_t at, Context *context)
{
    int64_t mc_seqno;
    if (at + 8 > row->count) {
        PyErr_SetString(PyExc_ValueError, "a shape of the segment is damaged");
        return false;
    }
    Value *values = row->values + at;
    if (!number_at(source, MC_SEQNO, context->row, &mc_seqno))
        return false;
    values[0] = number_value(context->workchain);
    values[1] = (Value){.data = context->account, .size = HASH_BYTES, .form = IS_BYTES};
    values[2] = number_value(context->lt);
    values[4] = number_value(context->now);
    values[5] = number_value(mc_seqno);
    return find_hash(source, HASH, context->row, &values[3]) &&
           find_hash(source, HASH_AFTER, context->row, &values[6]) &&
           find_trace_id(source, context->row, &values[7]);
}

enum { RECORD_ROW, RECORD_MESSAGES, RECORD_BEFORE, RECORD_AFTER, RECORD_PARTS };

/* Set a part of a record; fails if the object is NULL. */
static bool take_part(Row *record, Py_ssize_t part, PyObject *object)
{
    if (object)
        give_object(record, part, object);
    return object != NULL;
}

/* Read the parts of a record; same: its state before is the state after the previous record. */
static bool read_parts(Source *source, Cursor *cursor, Context *context, Row *record, bool *same)
{
    bool unused = false;
    if (!take_part(record, RECORD_AFTER, read_state(source, cursor, context, &unused)) ||
        !take_part(record, RECORD_BEFORE, read_state(source, cursor, context, same)))
        return false;
    Shape *shape = read_shape(source, cursor, 0, TRANSACTION);
    Row *row = shape ? read_row(source, cursor, context, shape) : NULL;
    if (!take_part(record, RECORD_ROW, (PyObject *)row) ||
        !fill_transaction(source, row, shape->count, context))
        return false;
    context->in_hash = row->values[source->in_hash_at];
    return take_part(record, RECORD_MESSAGES, read_messages(source, cursor, context));
}

PyObject *read_record(Source *source, Context *context, int64_t number)
{
    Cursor cursor;
    bool same = false, unused = false;
    if (!find_record(source, context, number, &cursor))
        return NULL;
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(source->types, KINDS);
    Row *record = new_row(type, RECORD_PARTS, 0, NULL);
    bool is_read = record && read_parts(source, &cursor, context, record, &same);
    if (is_read && same)
        is_read = find_record(source, context, number - 1, &cursor) &&
                  take_part(record, RECORD_BEFORE, read_state(source, &cursor, context, &unused));
    if (!is_read)
        Py_CLEAR(record);
    return (PyObject *)record;
}
