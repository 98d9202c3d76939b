/* Finds the record of a row, and its account. */
#include "rows.h"

bool find_id(Source *source, int64_t number, const uint8_t **account, int64_t *workchain)
{
    const uint8_t *id = item_at(source, ACCOUNT_ID, number, ACCOUNT_ID_BYTES);
    if (!id)
        return false;
    const uint8_t *bytes = id + HASH_BYTES;
    uint32_t biased =
        (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    *account = id;
    *workchain = (int64_t)biased - (1LL << 31);
    return true;
}

/* Set the account of a row: rows are grouped by account. */
static bool take_account(Source *source, Context *context, int64_t row)
{
    const Packed *rows = &source->numbers[ACCOUNT_ROW];
    int64_t low = 0, high = rows->count - 1;
    while (high - low > 1) {
        int64_t middle = middle_of(low, high);
        if (packed_at(rows, middle) <= row)
            low = middle;
        else
            high = middle;
    }
    return find_id(source, low, &context->account, &context->workchain) &&
           number_at(source, ACCOUNT_ROW, low, &context->first) &&
           number_at(source, ACCOUNT_ROW, low + 1, &context->last);
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
    context->in_hash = (Value){.form = IS_NONE};
    context->lt_before = context->lt;
    return row <= context->first || number_at(source, LT, row - 1, &context->lt_before);
}
