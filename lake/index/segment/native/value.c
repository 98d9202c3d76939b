/* Decodes the values of a row in a record: see module tonlake.lake.index.segment.shape. */
#include "rows.h"

static bool fail(const char *what)
{
    PyErr_Format(PyExc_ValueError, "a record of the segment is damaged: %s", what);
    return false;
}

bool read_long_number(Cursor *cursor, uint64_t *value)
{
    uint64_t found = 0;
    for (int shift = 0; cursor->at < cursor->end && shift < 64; shift += 7) {
        uint8_t byte = *cursor->at++;
        found |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = found;
            return true;
        }
    }
    return fail("a number ends too early");
}

const uint8_t *item_at(Source *source, Array array, int64_t at, Py_ssize_t width)
{
    const Py_buffer *view = &source->arrays[array];
    if (at < 0 || at >= view->len / width) {
        fail("a place is outside of its array");
        return NULL;
    }
    return (const uint8_t *)view->buf + at * width;
}

bool number_at(Source *source, Array array, int64_t at, int64_t *value)
{
    const Packed *packed = &source->numbers[array];
    if (at < 0 || at >= packed->count)
        return fail("a place is outside of its array");
    *value = packed_at(packed, at);
    return true;
}

static bool hold_bytes(const uint8_t *data, uint64_t size, Value *value)
{
    *value = (Value){.data = data, .size = (uint32_t)size, .form = IS_BYTES};
    return data != NULL && (size <= UINT32_MAX || fail("bytes are too long"));
}

bool find_hash(Source *source, Array array, int64_t row, Value *value)
{
    return hold_bytes(item_at(source, array, row, HASH_BYTES), HASH_BYTES, value);
}

/* Find bytes by reference: far ones in an earlier record, literal ones here. */
static const uint8_t *find_bytes(Source *source, Cursor *cursor, uint64_t form, uint64_t *size)
{
    uint64_t at;
    if (form >= LITERAL) {
        *size = form - LITERAL;
        if (*size > (uint64_t)(cursor->end - cursor->at)) {
            fail("bytes end too early");
            return NULL;
        }
        const uint8_t *found = cursor->at;
        cursor->at += *size;
        return found;
    }
    *size = HASH_BYTES;
    if (form == FAR_BYTES && !read_number(cursor, size))
        return NULL;
    if (!read_number(cursor, &at))
        return NULL;
    const Py_buffer *records = &source->arrays[RECORDS];
    if (at > (uint64_t)records->len || *size > (uint64_t)records->len - at) {
        fail("bytes are outside of the records");
        return NULL;
    }
    return (const uint8_t *)records->buf + at;
}

/* Find the literal bytes that follow the far ones of the previous column. */
static const uint8_t *find_next(Source *source, const Context *context, uint64_t *size)
{
    const Py_buffer *records = &source->arrays[RECORDS];
    const uint8_t *data = records->buf;
    uint64_t form;
    if (context->far_end > records->len) {
        fail("bytes are outside of the records");
        return NULL;
    }
    Cursor next = {data + context->far_end, data + records->len};
    if (!read_number(&next, &form))
        return NULL;
    if (form < LITERAL) {
        fail("it refers to no bytes");
        return NULL;
    }
    return find_bytes(source, &next, form, size);
}

static bool find_form(Source *source, Cursor *cursor, Context *context, Value *value)
{
    uint64_t form, size = 0;
    if (!read_number(cursor, &form))
        return false;
    switch (form) {
    case OWN_ACCOUNT:
        return context->account ? hold_bytes(context->account, HASH_BYTES, value)
                                : fail("there is no account");
    case HASH_BEFORE:
        return find_hash(source, HASH, context->row - 1, value);
    case STATE_BEFORE:
        return find_hash(source, HASH_AFTER, context->row - 1, value);
    case IN_HASH:
        *value = context->in_hash;
        return value->form != IS_NONE || fail("there is no in message");
    default: {
        const uint8_t *data = form == NEXT_BYTES ? find_next(source, context, &size)
                                                 : find_bytes(source, cursor, form, &size);
        if (data && form < NEXT_BYTES)
            context->far_end =
                data - (const uint8_t *)source->arrays[RECORDS].buf + (int64_t)size;
        return hold_bytes(data, size, value);
    }
    }
}

static bool find_text(Source *source, Cursor *cursor, char code, Value *value)
{
    uint64_t form, size = 0;
    if (!read_number(cursor, &form))
        return false;
    if (form != FAR_HASH && form != FAR_BYTES && form < LITERAL)
        return fail("a text has no form");
    const uint8_t *data = find_bytes(source, cursor, form, &size);
    if (!hold_bytes(data, size, value))
        return false;
    value->form = code == 'a' ? IS_DIGITS : IS_TEXT;
    return true;
}

/* Find a numbered hash. */
static bool find_numbered(Source *source, Cursor *cursor, Context *context, Value *value)
{
    uint64_t number;
    if (!read_number(cursor, &number))
        return false;
    if (!number)
        return find_form(source, cursor, context, value);
    if (number > (uint64_t)PyTuple_Size(source->hashes))
        return fail("a hash has no such number");
    *value = lend_object(PyTuple_GetItem(source->hashes, (Py_ssize_t)number - 1));
    return true;
}

/* Return the gas that a cost corresponds to; the cost is NULL, None or a number. */
static uint64_t divide_fees(const Value *fees)
{
    return fees && fees->form == IS_NUMBER && fees->number > 0 ? (uint64_t)fees->number / GAS_PRICE
                                                               : 0;
}

/* Return the base that a number is close to, by its code. */
static uint64_t base_of(const Context *context, char code)
{
    switch (code) {
    case 'l':
        return (uint64_t)context->lt;
    case 'p':
        return (uint64_t)context->lt_before;
    case 't':
        return (uint64_t)context->now;
    default:
        return 0;
    }
}

/* Read the value of a column that the shape leaves open; for code g, the excess over the base. */
static bool find_value(Source *source, Cursor *cursor, Context *context, char code, Value *value)
{
    uint64_t number;
    if (code == 'b' || code == 'n')
        return find_form(source, cursor, context, value);
    if (code == 'h')
        return find_numbered(source, cursor, context, value);
    if (code == 's' || code == 'a')
        return find_text(source, cursor, code, value);
    if (!read_number(cursor, &number))
        return false;
    *value = number_value(code == 'r' ? (int64_t)reverse_bits(number)
                                      : (int64_t)((number >> 1 ^ (0 - (number & 1))) +
                                                  base_of(context, code)));
    return true;
}

static bool skip_value(Source *source, Cursor *cursor, char code)
{
    uint64_t form, size;
    if (!read_number(cursor, &form))
        return false;
    if (code == 'h' && (form || !read_number(cursor, &form)))
        return form != 0;
    if (code != 'b' && code != 'n' && code != 'h' && code != 's' && code != 'a')
        return true;
    if (form < LITERAL && form != FAR_HASH && form != FAR_BYTES)
        return true;
    return find_bytes(source, cursor, form, &size) != NULL;
}

/* Replace the position of a number in the row's body with the number. */
static bool fill_opcode(const Source *source, Value *values, Py_ssize_t opcode_at)
{
    const Value *body = &values[source->body_at];
    const uint8_t *data = NULL;
    size_t size = 0;
    int64_t at = values[opcode_at].form == IS_NUMBER ? values[opcode_at].number : -1;
    if (body->form != IS_NONE && !find_held_bytes(body, &data, &size))
        return false;
    if (at < 0 || size < 4 || (uint64_t)at > size - 4)
        return fail("a body is shorter than its opcode");
    data += at;
    values[opcode_at] = number_value((int32_t)((uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 |
                                               (uint32_t)data[2] << 8 | data[3]));
    return true;
}

Shape *read_shape(Source *source, Cursor *cursor, uint64_t bias, Kind kind)
{
    uint64_t number;
    if (!read_number(cursor, &number))
        return NULL;
    number -= bias;
    if (number >= (uint64_t)source->shape_count || source->shapes[number].kind != kind) {
        fail("it has an unknown shape");
        return NULL;
    }
    return &source->shapes[number];
}

bool find_values(Source *source, Cursor *cursor, Context *context, const Shape *shape,
                 Value *values)
{
    context->far_end = 0;
    memcpy(values, shape->values, (size_t)shape->count * sizeof *values);
    for (Py_ssize_t number = 0; number < shape->open_count; number++) {
        Py_ssize_t at = shape->open[number];
        char code = shape->codes[at];
        if (!find_value(source, cursor, context, code, &values[at]))
            return false;
        if (code == 'g' && at)
            values[at].number =
                (int64_t)((uint64_t)values[at].number + divide_fees(&values[at - 1]));
    }
    return shape->opcode_at < 0 || fill_opcode(source, values, shape->opcode_at);
}

Row *read_row(Source *source, Cursor *cursor, Context *context, const Shape *shape)
{
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(source->types, shape->kind);
    Row *row = new_row(type, source->widths[shape->kind], shape->count, (PyObject *)source);
    if (row && !find_values(source, cursor, context, shape, row->values))
        Py_CLEAR(row);
    return row;
}

bool skip_row(Source *source, Cursor *cursor, const Shape *shape)
{
    for (Py_ssize_t number = 0; number < shape->open_count; number++)
        if (!skip_value(source, cursor, shape->codes[shape->open[number]]))
            return false;
    return true;
}

bool find_column(Source *source, Cursor *cursor, Context *context, const Shape *shape,
                 Py_ssize_t column, Value *value)
{
    *value = shape->values[column];
    for (Py_ssize_t number = 0; number < shape->open_count; number++) {
        Py_ssize_t at = shape->open[number];
        if (at == column)
            return find_value(source, cursor, context, shape->codes[at], value);
        if (at > column)
            break;
        if (!skip_value(source, cursor, shape->codes[at]))
            return false;
    }
    return true;
}
