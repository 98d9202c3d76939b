/* Where the record of a row stands, and whose it is. */
#include "rows.h"

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

PyObject *read_hash(Source *source, Array array, int64_t row)
{
    const uint8_t *data = item_at(source, array, row, HASH_BYTES);
    return data ? PyBytes_FromStringAndSize((const char *)data, HASH_BYTES) : NULL;
}
