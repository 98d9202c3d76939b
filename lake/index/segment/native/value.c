/* The values of a row as a record has them: see module tonlake.lake.index.segment.shape. */
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

static PyObject *hash_at(Source *source, Array array, int64_t row)
{
    const uint8_t *data = item_at(source, array, row, HASH_BYTES);
    return data ? PyBytes_FromStringAndSize((const char *)data, HASH_BYTES) : NULL;
}

/* Find bytes that stand elsewhere: far ones in an earlier record, literal ones here. */
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

/* Find the literal bytes that stand behind the far ones of the column before. */
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

static PyObject *read_bytes(Source *source, Cursor *cursor, Context *context)
{
    uint64_t form, size;
    if (!read_number(cursor, &form))
        return NULL;
    switch (form) {
    case OWN_ACCOUNT:
        if (!context->account) {
            fail("there is no account");
            return NULL;
        }
        return Py_NewRef(context->account);
    case HASH_BEFORE:
        return hash_at(source, HASH, context->row - 1);
    case STATE_BEFORE:
        return hash_at(source, HASH_AFTER, context->row - 1);
    case IN_HASH:
        if (!context->in_hash) {
            fail("there is no in message");
            return NULL;
        }
        return Py_NewRef(context->in_hash);
    default: {
        const uint8_t *data = form == NEXT_BYTES ? find_next(source, context, &size)
                                                 : find_bytes(source, cursor, form, &size);
        if (data && form < NEXT_BYTES)
            context->far_end = data - (const uint8_t *)source->arrays[RECORDS].buf + (int64_t)size;
        return data ? PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size) : NULL;
    }
    }
}

static PyObject *read_text(Source *source, Cursor *cursor, bool whole_number)
{
    uint64_t form, size;
    if (!read_number(cursor, &form) || (form != FAR_HASH && form != FAR_BYTES && form < LITERAL)) {
        if (!PyErr_Occurred())
            fail("a text has no form");
        return NULL;
    }
    const uint8_t *data = find_bytes(source, cursor, form, &size);
    if (!data)
        return NULL;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)size, NULL);
    if (!whole_number || !text)
        return text;
    const char *digits = PyUnicode_AsUTF8AndSize(text, NULL);
    PyObject *number = digits ? PyLong_FromString(digits, NULL, 10) : NULL;
    Py_DECREF(text);
    return number;
}

/* Read a hash of few values. */
static PyObject *read_numbered(Source *source, Cursor *cursor, Context *context)
{
    uint64_t number;
    if (!read_number(cursor, &number))
        return NULL;
    if (!number)
        return read_bytes(source, cursor, context);
    if (number > (uint64_t)PyTuple_Size(source->hashes)) {
        fail("a hash has no such number");
        return NULL;
    }
    return Py_NewRef(PyTuple_GetItem(source->hashes, (Py_ssize_t)number - 1));
}

/* Return how much gas was probably used, from its cost: NULL, None or a number. */
static uint64_t divide_fees(PyObject *fees)
{
    if (!fees || !PyLong_Check(fees))
        return 0;
    long long nanotons = PyLong_AsLongLong(fees);
    if (nanotons == -1 && PyErr_Occurred())
        PyErr_Clear();
    return nanotons > 0 ? (uint64_t)nanotons / GAS_PRICE : 0;
}

/* Return what a number is close to, by its code and the column before. */
static uint64_t base_of(const Context *context, char code, PyObject *before)
{
    switch (code) {
    case 'l':
        return (uint64_t)context->lt;
    case 'p':
        return (uint64_t)context->lt_before;
    case 't':
        return (uint64_t)context->now;
    case 'g':
        return divide_fees(before);
    default:
        return 0;
    }
}

static PyObject *read_value(Source *source, Cursor *cursor, Context *context, char code,
                            PyObject *before)
{
    if (code == 'b' || code == 'n')
        return read_bytes(source, cursor, context);
    if (code == 'h')
        return read_numbered(source, cursor, context);
    if (code == 's' || code == 'a')
        return read_text(source, cursor, code == 'a');
    uint64_t number;
    if (!read_number(cursor, &number))
        return NULL;
    if (code == 'r')
        return PyLong_FromLongLong((long long)reverse_bits(number));
    uint64_t value = number >> 1 ^ (0 - (number & 1));
    return PyLong_FromLongLong((long long)(value + base_of(context, code, before)));
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

/* Whether the shape has all of a column: its value, or where in the body it stands. */
static bool is_shaped(char code)
{
    return code == '.' || code == 'o';
}

/* Put the number that stands in the row's body in the place of where it stands there. */
static bool fill_opcode(const Source *source, Row *row, Py_ssize_t at)
{
    PyObject *body = row->values[source->body_at];
    Py_ssize_t place = PyLong_AsSsize_t(row->values[at]);
    if (place < 0 || !body || !PyBytes_Check(body) || PyBytes_Size(body) < 4 ||
        place > PyBytes_Size(body) - 4) {
        PyErr_Clear();
        return fail("a body is shorter than its opcode");
    }
    const uint8_t *data = (const uint8_t *)PyBytes_AsString(body) + place;
    uint32_t opcode = (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 |
                      data[3];
    Py_DECREF(row->values[at]);
    row->values[at] = PyLong_FromLong((int32_t)opcode);
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
                                               : read_bytes(source, cursor, context);
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
    PyObject *value = read_bytes(source, cursor, context);
    context->in_hash = NULL;
    return value;
}
