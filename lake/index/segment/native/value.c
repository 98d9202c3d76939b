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

static bool find_hash(Source *source, Array array, int64_t row, Value *value)
{
    value->data = item_at(source, array, row, HASH_BYTES);
    value->size = HASH_BYTES;
    return value->data != NULL;
}

static bool find_object(PyObject *object, const char *what, Value *value)
{
    value->object = object;
    return object != NULL || fail(what);
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
    uint64_t form;
    if (!read_number(cursor, &form))
        return false;
    switch (form) {
    case OWN_ACCOUNT:
        return find_object(context->account, "there is no account", value);
    case HASH_BEFORE:
        return find_hash(source, HASH, context->row - 1, value);
    case STATE_BEFORE:
        return find_hash(source, HASH_AFTER, context->row - 1, value);
    case IN_HASH:
        return find_object(context->in_hash, "there is no in message", value);
    default:
        value->data = form == NEXT_BYTES ? find_next(source, context, &value->size)
                                         : find_bytes(source, cursor, form, &value->size);
        if (value->data && form < NEXT_BYTES)
            context->far_end = value->data - (const uint8_t *)source->arrays[RECORDS].buf +
                               (int64_t)value->size;
        return value->data != NULL;
    }
}

static bool find_text(Source *source, Cursor *cursor, Value *value)
{
    uint64_t form;
    if (!read_number(cursor, &form))
        return false;
    if (form != FAR_HASH && form != FAR_BYTES && form < LITERAL)
        return fail("a text has no form");
    value->data = find_bytes(source, cursor, form, &value->size);
    return value->data != NULL;
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
    value->object = PyTuple_GetItem(source->hashes, (Py_ssize_t)number - 1);
    return true;
}

/* Return the gas that a cost corresponds to; the cost is NULL, None or a number. */
static uint64_t divide_fees(PyObject *fees)
{
    if (!fees || !PyLong_Check(fees))
        return 0;
    long long nanotons = PyLong_AsLongLong(fees);
    if (nanotons == -1 && PyErr_Occurred())
        PyErr_Clear();
    return nanotons > 0 ? (uint64_t)nanotons / GAS_PRICE : 0;
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

bool find_value(Source *source, Cursor *cursor, Context *context, char code, Value *value)
{
    uint64_t number;
    *value = (Value){NULL};
    if (code == 'b' || code == 'n')
        return find_form(source, cursor, context, value);
    if (code == 'h')
        return find_numbered(source, cursor, context, value);
    if (code == 's' || code == 'a')
        return find_text(source, cursor, value);
    if (!read_number(cursor, &number))
        return false;
    value->number = code == 'r' ? (int64_t)reverse_bits(number)
                                : (int64_t)((number >> 1 ^ (0 - (number & 1))) +
                                            base_of(context, code));
    return true;
}

static PyObject *make_text(const Value *value, bool whole_number)
{
    PyObject *text = PyUnicode_DecodeUTF8((const char *)value->data, (Py_ssize_t)value->size, NULL);
    if (!whole_number || !text)
        return text;
    const char *digits = PyUnicode_AsUTF8AndSize(text, NULL);
    PyObject *number = digits ? PyLong_FromString(digits, NULL, 10) : NULL;
    Py_DECREF(text);
    return number;
}

static PyObject *read_value(Source *source, Cursor *cursor, Context *context, char code,
                            PyObject *before)
{
    Value value;
    if (!find_value(source, cursor, context, code, &value))
        return NULL;
    if (value.object)
        return Py_NewRef(value.object);
    if (code == 's' || code == 'a')
        return make_text(&value, code == 'a');
    if (value.data)
        return PyBytes_FromStringAndSize((const char *)value.data, (Py_ssize_t)value.size);
    uint64_t base = code == 'g' ? divide_fees(before) : 0;
    return PyLong_FromLongLong((long long)((uint64_t)value.number + base));
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

bool read_opcode(const uint8_t *body, uint64_t size, PyObject *place, int32_t *opcode)
{
    Py_ssize_t at = PyLong_AsSsize_t(place);
    if (at < 0 || !body || size < 4 || (uint64_t)at > size - 4) {
        PyErr_Clear();
        return fail("a body is shorter than its opcode");
    }
    const uint8_t *data = body + at;
    *opcode = (int32_t)((uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 |
                        data[3]);
    return true;
}

/* Replace the position of a number in the row's body with the number. */
static bool fill_opcode(const Source *source, Row *row, Py_ssize_t at)
{
    PyObject *body = row->values[source->body_at];
    bool is_body = body && PyBytes_Check(body);
    int32_t opcode;
    if (!read_opcode(is_body ? (const uint8_t *)PyBytes_AsString(body) : NULL,
                     is_body ? (uint64_t)PyBytes_Size(body) : 0, row->values[at], &opcode))
        return false;
    Py_DECREF(row->values[at]);
    row->values[at] = PyLong_FromLong(opcode);
    return row->values[at] != NULL;
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

Row *read_row(Source *source, Cursor *cursor, Context *context, const Shape *shape)
{
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(source->types, shape->kind);
    Row *row = new_row(type, source->widths[shape->kind]);
    if (!row)
        return NULL;
    Py_ssize_t opcode_at = -1;
    context->far_end = 0;
    for (Py_ssize_t at = 0; at < shape->count; at++) {
        char code = shape->codes[at];
        if (code == 'o')
            opcode_at = at;
        row->values[at] = is_shaped(code)
                              ? Py_NewRef(shape->values[at])
                              : read_value(source, cursor, context, code,
                                           at ? row->values[at - 1] : NULL);
        if (!row->values[at]) {
            Py_DECREF(row);
            return NULL;
        }
    }
    if (opcode_at >= 0 && !fill_opcode(source, row, opcode_at)) {
        Py_DECREF(row);
        return NULL;
    }
    return row;
}

bool skip_row(Source *source, Cursor *cursor, Context *context, const Shape *shape,
              PyObject **in_hash)
{
    for (Py_ssize_t at = 0; at < shape->count; at++) {
        if (in_hash && at == source->in_hash_at) {
            *in_hash = shape->codes[at] == '.' ? Py_NewRef(shape->values[at])
                                               : read_value(source, cursor, context, 'b', NULL);
            if (!*in_hash)
                return false;
        } else if (!is_shaped(shape->codes[at]) && !skip_value(source, cursor, shape->codes[at])) {
            return false;
        }
    }
    return true;
}

PyObject *read_column(Source *source, Cursor *cursor, Context *context, const Shape *shape,
                      Py_ssize_t column, PyObject *in_hash)
{
    for (Py_ssize_t at = 0; at < column; at++)
        if (!is_shaped(shape->codes[at]) && !skip_value(source, cursor, shape->codes[at]))
            return NULL;
    if (shape->codes[column] == '.')
        return Py_NewRef(shape->values[column]);
    context->in_hash = in_hash;
    PyObject *value = read_value(source, cursor, context, 'b', NULL);
    context->in_hash = NULL;
    return value;
}
