/* Writes rows of tables as JSON, as described by a layout.
 *
 * A layout is compiled once from tuples (kind, source, columns, prefix, missing, other) and used for
 * every row. Columns are read by subscription, so a row may be a dict or any object with
 * __getitem__. api/v3/layout/field.py explains the kinds.
 */
#include "writer.h"

#include "body.h"
#include "record.h"

static int write_object(Writer *writer, Layout *layout, PyObject *row);

/* Add bytes that are JSON already. */
static int add_json(Buffer *out, PyObject *value)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(value, &data, &size) < 0)
        return -1;
    return buffer_add(out, data, (size_t)size);
}

/* Add base64 and the closing quote. */
static int add_base64(Buffer *out, PyObject *value)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(value, &data, &size) < 0 ||
        buffer_add_base64(out, (const uint8_t *)data, (size_t)size) < 0)
        return -1;
    return buffer_add_char(out, '"');
}

static int add_string(Buffer *out, PyObject *value, int quoted)
{
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(value, &size);
    if (!data)
        return -1;
    return quoted ? buffer_add_text(out, data, (size_t)size) : buffer_add(out, data, (size_t)size);
}

/* Add a number: 64-bit integers in C, others as Python writes them. */
static int add_number(Buffer *out, PyObject *value)
{
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow)
            return number == -1 && PyErr_Occurred() ? -1 : buffer_add_number(out, number);
    }
    PyObject *text = PyObject_Str(value);
    int failed = text ? add_string(out, text, 0) : -1;
    Py_XDECREF(text);
    return failed;
}

static int note_account(PyObject *named, PyObject *workchain, PyObject *account)
{
    PyObject *pair = PyTuple_Pack(2, workchain, account);
    int failed = pair ? PySet_Add(named, pair) : -1;
    Py_XDECREF(pair);
    return failed;
}

/* Add a raw address and the closing quote. */
static int add_account(Buffer *out, PyObject *workchain, PyObject *account)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(account, &data, &size) < 0 || add_number(out, workchain) < 0 ||
        buffer_add_char(out, ':') < 0 ||
        buffer_add_hex(out, (const uint8_t *)data, (size_t)size) < 0)
        return -1;
    return buffer_add_char(out, '"');
}

enum { SHARD_DIGITS = 16, OPCODE_DIGITS = 8 };

/* Add a signed number as the hex digits of its 64 bits, without leading zeros, and the closing quote. */
static int add_shard(Buffer *out, PyObject *value)
{
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    static const char digits[] = "0123456789ABCDEF";
    char text[SHARD_DIGITS + 1], *at = text + sizeof text;
    unsigned long long rest = (unsigned long long)number;
    *--at = '"';
    do {
        *--at = digits[rest & 15];
        rest >>= 4;
    } while (rest);
    return buffer_add(out, at, (size_t)(text + sizeof text - at));
}

/* Add a signed number as 0x and the hex digits of its 32 bits, and the closing quote. */
static int add_opcode(Buffer *out, PyObject *value)
{
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    static const char digits[] = "0123456789abcdef";
    char text[] = "0x00000000\"";
    for (int digit = 0; digit < OPCODE_DIGITS; digit++)
        text[2 + digit] = digits[(unsigned long long)number >> (28 - 4 * digit) & 15];
    return buffer_add(out, text, sizeof text - 1);
}

/* Return whether the column `beside` of a field equals its text; -1 on error. */
static int equals_text(Field *field, PyObject *row)
{
    PyObject *beside = read_column(row, &field->beside, 0);
    int equal = beside ? PyObject_RichCompareBool(beside, field->equals, Py_EQ) : -1;
    Py_XDECREF(beside);
    return equal;
}

/* Add the name of a body's opcode, from the Python function unless it is unknown; keep the decoded
 * body for add_body. */
static int add_opcode_name(Writer *writer, Field *field, PyObject *row)
{
    Py_CLEAR(writer->body);
    int may_follow = equals_text(field, row), is_unknown = 0;
    PyObject *bag = may_follow ? NULL : read_column(row, field->columns, 0);
    if (may_follow < 0 || (!may_follow && !bag))
        return -1;
    if (bag)
        is_unknown = is_unknown_body(bag, field->known);
    Py_XDECREF(bag);
    if (is_unknown)
        return is_unknown < 0 ? -1 : buffer_add(&writer->out, "null", 4);
    PyObject *both = PyObject_CallFunctionObjArgs(field->decode, row, NULL), *name;
    int failed = -1;
    if (both && !PyTuple_Check(both))
        PyErr_SetString(PyExc_TypeError, "a decoded body is a pair");
    else if (both && PyArg_ParseTuple(both, "SS:body", &name, &writer->body)) {
        Py_INCREF(writer->body);
        failed = add_json(&writer->out, name);
    } else
        writer->body = NULL;
    Py_XDECREF(both);
    return failed;
}

/* Add a body: as decoded by add_opcode_name, else by its own layout. */
static int add_body(Writer *writer, Field *field, PyObject *row)
{
    if (!writer->body)
        return write_object(writer, field->inner, row);
    int failed = add_json(&writer->out, writer->body);
    Py_CLEAR(writer->body);
    return failed;
}

static int add_list(Writer *writer, const Field *field, PyObject *rows)
{
    Py_ssize_t count = PyList_Size(rows);
    if (count < 0 || buffer_add_char(&writer->out, '[') < 0)
        return -1;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *row = PyList_GetItem(rows, at);
        if (!row || (at && buffer_add_char(&writer->out, ',') < 0) ||
            write_object(writer, field->inner, row) < 0)
            return -1;
    }
    return buffer_add_char(&writer->out, ']');
}

static int add_value(Writer *writer, Field *field, PyObject *row, PyObject *value)
{
    Buffer *out = &writer->out;
    switch (field->kind) {
    case NUMBER:
        return add_number(out, value);
    case TEXT_NUMBER:
        return add_number(out, value) < 0 ? -1 : buffer_add_char(out, '"');
    case BASE64:
    case BASE64_UNLESS:
        return add_base64(out, value);
    case FLAG: {
        int flag = PyObject_IsTrue(value);
        return flag < 0 ? -1 : flag ? buffer_add(out, "true", 4) : buffer_add(out, "false", 5);
    }
    case TEXT:
        return add_string(out, value, 1);
    case JSON:
    case CURRENCIES:
        return add_string(out, value, 0);
    case BAG:
        return add_bag(out, value) < 0 ? -1 : buffer_add_char(out, '"');
    case ACCOUNT:
    case NAMED_ACCOUNT: {
        PyObject *account = read_column(row, &field->beside, 0);
        int failed = account ? add_account(out, value, account) : -1;
        if (!failed && writer->named && field->kind == NAMED_ACCOUNT)
            failed = note_account(writer->named, value, account);
        Py_XDECREF(account);
        return failed;
    }
    case SHARD:
        return add_shard(out, value);
    case OPCODE:
        return add_opcode(out, value);
    case OPCODE_NAME:
        return add_opcode_name(writer, field, row);
    case BODY:
        return add_body(writer, field, value);
    case OBJECT:
        return write_object(writer, field->inner, value);
    case LIST:
        return add_list(writer, field, value);
    default:
        return 0;
    }
}

/* Return a new reference to the value of a field; None if it is missing. */
static PyObject *find_value(Field *field, PyObject *row)
{
    int may_lack = !field->missing.data;
    switch (field->kind) {
    case CONSTANT:
        return Py_NewRef(Py_True);
    case LIST:
    case OPCODE_NAME:
    case BODY:
        return Py_NewRef(row);
    case CURRENCIES: {
        int equal = equals_text(field, row);
        if (equal <= 0)
            return equal < 0 ? NULL : Py_NewRef(Py_None);
        PyObject *value = read_column(row, field->columns, 0);
        if (!value || value != Py_None)
            return value;
        Py_DECREF(value);
        return PyUnicode_FromString("{}");
    }
    case OBJECT:
        if (row == Py_None || !field->column_count)
            return Py_NewRef(row);
        for (Py_ssize_t at = 0; at < field->column_count; at++) {
            PyObject *value = read_column(row, &field->columns[at], 0);
            if (!value)
                return NULL;
            Py_DECREF(value);
            if (value != Py_None)
                return Py_NewRef(row);
        }
        return Py_NewRef(Py_None);
    case ACCOUNT:
    case NAMED_ACCOUNT:
    case BASE64_UNLESS: {
        PyObject *other = read_column(row, &field->beside, may_lack);
        if (!other)
            return NULL;
        PyObject *value = read_column(row, field->columns, may_lack);
        int hide = other == Py_None;
        if (value && field->kind == BASE64_UNLESS)
            hide = PyObject_RichCompareBool(value, other, Py_EQ);
        Py_DECREF(other);
        if (value && hide) {
            Py_DECREF(value);
            return hide < 0 ? NULL : Py_NewRef(Py_None);
        }
        return value;
    }
    default:
        return read_column(row, field->columns, may_lack);
    }
}

/* Add the beginning of a field, without its comma if it is the first of its object. */
static int add_lead(Buffer *out, const Lead *lead)
{
    size_t comma = out->data[out->size - 1] == '{';
    return buffer_add_steps(out, lead->data + comma, lead->size - comma);
}

static int write_field(Writer *writer, Field *field, PyObject *row)
{
    if (field->source >= 0) {
        row = PyTuple_GetItem(writer->sources, field->source);
        if (!row)
            return -1;
    }
    PyObject *value = find_value(field, row);
    if (!value)
        return -1;
    int failed = 0, is_missing = value == Py_None;
    const Lead *lead = is_missing ? &field->missing : &field->lead;
    if (lead->data)
        failed = add_lead(&writer->out, lead);
    if (!failed && !is_missing)
        failed = add_value(writer, field, row, value);
    Py_DECREF(value);
    return failed ? -1 : 0;
}

static int write_object(Writer *writer, Layout *layout, PyObject *row)
{
    if (++writer->depth > DEEPEST) {
        PyErr_SetString(PyExc_RecursionError, "a layout is nested too deep");
        return -1;
    }
    if (buffer_add_char(&writer->out, '{') < 0)
        return -1;
    for (Py_ssize_t at = 0; at < layout->count; at++)
        if (write_field(writer, &layout->fields[at], row) < 0)
            return -1;
    writer->depth--;
    return buffer_add_char(&writer->out, '}');
}

int add_sources(Writer *writer, Layout *layout, PyObject *sources)
{
    PyObject *row = PyTuple_GetItem(sources, 0);
    writer->sources = sources;
    writer->depth = 0;
    return row ? write_object(writer, layout, row) : -1;
}

/* Return the first of a tuple of rows as bytes, reusing the buffer of the writer. */
static PyObject *write_sources(Writer *writer, Layout *layout, PyObject *sources)
{
    writer->out.size = 0;
    if (add_sources(writer, layout, sources) < 0)
        return NULL;
    return PyBytes_FromStringAndSize(writer->out.data, (Py_ssize_t)writer->out.size);
}

void free_writer(Writer *writer)
{
    Py_XDECREF(writer->body);
    buffer_free(&writer->out);
}

PyObject *write_row(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *sources;
    if (!PyArg_ParseTuple(args, "OO!:write_row", &capsule, &PyTuple_Type, &sources))
        return NULL;
    Layout *layout = open_layout(capsule);
    Writer writer = {0};
    PyObject *text = layout ? write_sources(&writer, layout, sources) : NULL;
    free_writer(&writer);
    return text;
}

PyObject *write_records(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *record, *listed, *named;
    if (!PyArg_ParseTuple(args, "OOO!O!:write_records", &capsule, &record, &PyList_Type, &listed,
                          &PySet_Type, &named))
        return NULL;
    Layout *layout = open_layout(capsule);
    RecordParts *parts = layout ? open_record(record) : NULL;
    PyObject *texts = parts ? PyList_New(0) : NULL;
    Writer writer = {.named = named};
    for (Py_ssize_t at = 0; texts && at < PyList_Size(listed); at++) {
        PyObject *sources = take_record(parts, PyList_GetItem(listed, at));
        PyObject *text = sources ? write_sources(&writer, layout, sources) : NULL;
        if (!text || PyList_Append(texts, text) < 0)
            Py_CLEAR(texts);
        Py_XDECREF(text);
        Py_XDECREF(sources);
    }
    free_writer(&writer);
    return texts;
}
