/* Finds the record of a row, and its account. */
#include "rows.h"

void end_context(Context *context)
{
    Py_CLEAR(context->account);
    Py_CLEAR(context->workchain);
}

/* Set the account of a row: rows are grouped by account. */
static bool take_account(Source *source, Context *context, int64_t row)
{
    const Packed *rows = &source->numbers[ACCOUNT_ROW];
    int64_t low = 0, high = rows->count - 1;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (packed_at(rows, middle) <= row)
            low = middle;
        else
            high = middle;
    }
    const uint8_t *id = item_at(source, ACCOUNT_ID, low, ACCOUNT_ID_BYTES);
    if (!id || !number_at(source, ACCOUNT_ROW, low, &context->first) ||
        !number_at(source, ACCOUNT_ROW, low + 1, &context->last))
        return false;
    end_context(context);
    const uint8_t *workchain = id + HASH_BYTES;
    uint32_t biased = (uint32_t)workchain[0] << 24 | workchain[1] << 16 | workchain[2] << 8 |
                      workchain[3];
    context->account = PyBytes_FromStringAndSize((const char *)id, HASH_BYTES);
    context->workchain = PyLong_FromLong((long)((int64_t)biased - (1LL << 31)));
    return context->account && context->workchain;
}

bool find_record(Source *source, Context *context, int64_t row, Cursor *cursor)
{
    int64_t first, last;
    if (!number_at(source, LT, row, &context->lt) || !number_at(source, NOW, row, &context->now) ||
        !number_at(source, RECORD_AT, row, &first) || !number_at(source, RECORD_AT, row + 1, &last))
        return false;
    const Py_buffer *records = &source->arrays[RECORDS];
    if (first < 0 || last < first || last > records->len) {
        PyErr_SetString(PyExc_ValueError, "the places of the segment's records are damaged");
        return false;
    }
    cursor->at = (const uint8_t *)records->buf + first;
    cursor->end = (const uint8_t *)records->buf + last;
    if ((row < context->first || row >= context->last) && !take_account(source, context, row))
        return false;
    context->row = row;
    context->in_hash = NULL;
    context->lt_before = context->lt;
    return row <= context->first || number_at(source, LT, row - 1, &context->lt_before);
}

PyObject *read_hash(Source *source, Array array, int64_t row)
{
    const uint8_t *data = item_at(source, array, row, HASH_BYTES);
    return data ? PyBytes_FromStringAndSize((const char *)data, HASH_BYTES) : NULL;
}
