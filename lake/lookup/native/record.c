/* Records of a run: transactions with their messages and the states around them. */
#include "rows.h"

enum { NO_STATE, SAME_STATE, SHAPED };

#define NO_TRACE UINT32_MAX

static uint32_t load_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static int64_t load_i64(const uint8_t *at)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

void end_context(Context *context)
{
    Py_CLEAR(context->account);
    Py_CLEAR(context->workchain);
}

/* Take the account that a row belongs to: the rows of accounts stand one after the other. */
static bool take_account(Source *source, Context *context, int64_t row)
{
    const Py_buffer *view = &source->arrays[ACCOUNT_ROW];
    const uint8_t *rows = view->buf;
    int64_t low = 0, high = view->len / 4 - 1;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (load_u32(rows + 4 * middle) <= row)
            low = middle;
        else
            high = middle;
    }
    const uint8_t *id = item_at(source, ACCOUNT_ID, low, ACCOUNT_ID_BYTES);
    if (!id || !item_at(source, ACCOUNT_ROW, low + 1, 4))
        return false;
    end_context(context);
    context->first = load_u32(rows + 4 * low);
    context->last = load_u32(rows + 4 * (low + 1));
    const uint8_t *workchain = id + HASH_BYTES;
    uint32_t biased = (uint32_t)workchain[0] << 24 | workchain[1] << 16 | workchain[2] << 8 |
                      workchain[3];
    context->account = PyBytes_FromStringAndSize((const char *)id, HASH_BYTES);
    context->workchain = PyLong_FromLong((long)((int64_t)biased - (1LL << 31)));
    return context->account && context->workchain;
}

bool find_record(Source *source, Context *context, int64_t row, Cursor *cursor)
{
    const uint8_t *lt = item_at(source, LT, row, 8), *now = item_at(source, NOW, row, 4);
    if (!lt || !now)
        return false;
    int64_t block = row / source->records_per_block;
    const uint8_t *start = item_at(source, BLOCK_AT, block, 8);
    const uint8_t *stop = item_at(source, BLOCK_AT, block + 1, 8);
    if (!start || !stop)
        return false;
    const Py_buffer *records = &source->arrays[RECORDS];
    int64_t first = load_i64(start), last = load_i64(stop);
    if (first < 0 || last < first || last > records->len) {
        PyErr_SetString(PyExc_ValueError, "a block of the run is damaged");
        return false;
    }
    cursor->at = (const uint8_t *)records->buf + first;
    cursor->end = (const uint8_t *)records->buf + last;
    uint64_t size = 0;
    Cursor before = *cursor;
    for (int64_t at = block * source->records_per_block; at <= row; at++) {
        before = (Cursor){cursor->at, cursor->at + size};
        cursor->at += size;
        if (!read_number(cursor, &size))
            return false;
        if (size > (uint64_t)(cursor->end - cursor->at)) {
            PyErr_SetString(PyExc_ValueError, "a record of the run is longer than its block");
            return false;
        }
    }
    cursor->end = cursor->at + size;
    if ((row < context->first || row >= context->last) && !take_account(source, context, row))
        return false;
    context->row = row;
    context->before = row % source->records_per_block ? before : (Cursor){NULL, NULL};
    context->lt = load_i64(lt);
    context->now = load_u32(now);
    context->in_hash = NULL;
    return true;
}

/* Read a state or None; same tells that it is the one after the record before. */
static PyObject *read_state(Source *source, Cursor *cursor, Context *context, bool *same)
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

PyObject *read_hash(Source *source, Array array, int64_t row)
{
    const uint8_t *data = item_at(source, array, row, HASH_BYTES);
    return data ? PyBytes_FromStringAndSize((const char *)data, HASH_BYTES) : NULL;
}

static PyObject *read_trace(Source *source, int64_t row)
{
    const uint8_t *at = item_at(source, ROOT, row, 4);
    if (!at)
        return NULL;
    uint32_t root = load_u32(at);
    if (root == NO_TRACE)
        return Py_NewRef(Py_None);
    if (root < source->rows)
        return read_hash(source, HASH, root);
    return read_hash(source, OTHER, (int64_t)NO_TRACE - 1 - root);
}

/* Fill what the arrays have: the columns behind those of the shape, as module record lists them. */
static bool fill_transaction(Source *source, Row *row, Py_ssize_t at, Context *context)
{
    const uint8_t *mc_seqno = item_at(source, MC_SEQNO, context->row, 4);
    if (!mc_seqno || at + 8 > row->count)
        return false;
    row->values[at] = Py_NewRef(context->workchain);
    row->values[at + 1] = Py_NewRef(context->account);
    row->values[at + 2] = PyLong_FromLongLong(context->lt);
    row->values[at + 3] = read_hash(source, HASH, context->row);
    row->values[at + 4] = PyLong_FromLongLong(context->now);
    row->values[at + 5] = PyLong_FromUnsignedLong(load_u32(mc_seqno));
    row->values[at + 6] = read_hash(source, HASH_AFTER, context->row);
    row->values[at + 7] = read_trace(source, context->row);
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
        earlier = context->before;
        if (!earlier.at && !find_record(source, context, number - 1, &earlier))
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
