/* Reads complete records of a segment: transactions, their messages, and the states around. */
#include "rows.h"

PyObject *read_linked(Source *source, int64_t number)
{
    if (!number)
        return Py_NewRef(Py_None);
    if (number <= source->rows)
        return read_hash(source, HASH, number - 1);
    return read_hash(source, OTHER, number - source->rows - 1);
}

static PyObject *read_trace_id(Source *source, int64_t row)
{
    int64_t root;
    return number_at(source, ROOT, row, &root) ? read_linked(source, root) : NULL;
}

/* Fill in the columns after those of the shape from the arrays, as listed in module record. */
static bool fill_transaction(Source *source, Row *row, Py_ssize_t at, Context *context)
{
    int64_t mc_seqno;
    if (!number_at(source, MC_SEQNO, context->row, &mc_seqno) || at + 8 > row->count)
        return false;
    row->values[at] = Py_NewRef(context->workchain);
    row->values[at + 1] = Py_NewRef(context->account);
    row->values[at + 2] = PyLong_FromLongLong(context->lt);
    row->values[at + 3] = read_hash(source, HASH, context->row);
    row->values[at + 4] = PyLong_FromLongLong(context->now);
    row->values[at + 5] = PyLong_FromLongLong(mc_seqno);
    row->values[at + 6] = read_hash(source, HASH_AFTER, context->row);
    row->values[at + 7] = read_trace_id(source, context->row);
    for (Py_ssize_t place = at; place < at + 8; place++)
        if (!row->values[place])
            return false;
    return true;
}

PyObject *read_record(Source *source, Context *context, int64_t number)
{
    Cursor cursor, earlier;
    bool same = false, unused = false;
    if (!find_record(source, context, number, &cursor))
        return NULL;
    Row *record = new_row((PyTypeObject *)PyTuple_GetItem(source->types, KINDS), 4);
    if (!record)
        return NULL;
    record->values[3] = read_state(source, &cursor, context, &unused);
    record->values[2] = record->values[3] ? read_state(source, &cursor, context, &same) : NULL;
    Shape *shape = record->values[2] ? read_shape(source, &cursor, 0, TRANSACTION) : NULL;
    Row *row = shape ? read_row(source, &cursor, context, shape) : NULL;
    record->values[0] = (PyObject *)row;
    if (!row || !fill_transaction(source, row, shape->count, context))
        goto failed;
    PyObject **arrays = row->values + shape->count;
    context->in_hash = row->values[source->in_hash_at];
    record->values[1] = read_messages(source, &cursor, context, arrays[3], arrays[2]);
    context->in_hash = NULL;
    if (!record->values[1])
        goto failed;
    if (same) {
        if (!find_record(source, context, number - 1, &earlier))
            goto failed;
        Py_DECREF(record->values[2]);
        record->values[2] = read_state(source, &earlier, context, &unused);
        if (!record->values[2])
            goto failed;
    }
    return (PyObject *)record;
failed:
    Py_DECREF(record);
    return NULL;
}
