/* Writes rows of tables as JSON, as described by a layout.
 *
 * A layout is compiled once from tuples (kind, source, columns, prefix, missing, other) and used for
 * every row: a dict, or a named tuple. api/v3/layout/field.py explains the kinds.
 */
#include "writer.h"

enum { SHARD_DIGITS = 16, OPCODE_DIGITS = 8 };

static int write_object(Writer *writer, Layout *layout, PyObject *row);

int find_bytes(const Writer *writer, PyObject *value, const uint8_t **data, size_t *size)
{
    if (PyLong_CheckExact(value)) {
        size_t number = PyLong_AsSize_t(value);
        if (number >= writer->value_count) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_IndexError, "there is no value of number %zu", number);
            return -1;
        }
        *data = writer->values + number * VALUE_BYTES;
        *size = VALUE_BYTES;
        return 0;
    }
    char *own;
    Py_ssize_t own_size;
    if (PyBytes_AsStringAndSize(value, &own, &own_size) < 0)
        return -1;
    *data = (const uint8_t *)own;
    *size = (size_t)own_size;
    return 0;
}

/* Add base64 and the closing quote. */
static int add_base64(Writer *writer, PyObject *value)
{
    const uint8_t *data;
    size_t size;
    if (find_bytes(writer, value, &data, &size) < 0 ||
        buffer_add_base64(&writer->out, data, size) < 0)
        return -1;
    return buffer_add_char(&writer->out, '"');
}

/* Add a text as it is, or as a JSON string. */
static int add_text(Buffer *out, PyObject *value, int quoted)
{
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(value, &size);
    if (!data)
        return -1;
    return quoted ? buffer_add_text(out, data, (size_t)size) : buffer_add(out, data, (size_t)size);
}

/* Add a number: 64-bit integers in C, others as Python writes them. */
static int add_number(Buffer *out, PyObject *number)
{
    if (PyLong_CheckExact(number)) {
        int overflow;
        long long small = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (!overflow)
            return buffer_add_number(out, small);
    }
    PyObject *text = PyObject_Str(number);
    int failed = text ? add_text(out, text, 0) : -1;
    Py_XDECREF(text);
    return failed;
}

/* Note an account for the address book. */
static int note_account(Writer *writer, PyObject *workchain, const uint8_t *data, size_t size)
{
    PyObject *account = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
    PyObject *pair = account ? PyTuple_Pack(2, workchain, account) : NULL;
    int failed = pair ? PySet_Add(writer->named, pair) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(account);
    return failed;
}

/* Add a signed number in hex, and the closing quote: an opcode as 0x and all digits of its 32 bits, a
 * shard as the digits of its 64 bits without leading zeros. */
static int add_hex(Buffer *out, PyObject *value, int is_opcode)
{
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    const char *digits = is_opcode ? "0123456789abcdef" : "0123456789ABCDEF";
    char text[SHARD_DIGITS + 3], *at = text + sizeof text, *opcode = at - 1 - OPCODE_DIGITS;
    unsigned long long rest = (unsigned long long)number;
    *--at = '"';
    do {
        *--at = digits[rest & 15];
        rest >>= 4;
    } while (is_opcode ? at > opcode : rest != 0);
    if (is_opcode)
        at = memcpy(at - 2, "0x", 2);
    return buffer_add(out, at, (size_t)(text + sizeof text - at));
}

/* Add a body: as decoded by add_opcode_name, else by its own layout. */
static int add_body(Writer *writer, Field *field, PyObject *row)
{
    if (!writer->body)
        return write_object(writer, field->inner, row);
    int failed = buffer_add_json(&writer->out, writer->body);
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

/* Add a raw address and the closing quote, and note it for the address book. */
static int add_account(Writer *writer, Field *field, PyObject *row, PyObject *workchain)
{
    const uint8_t *data;
    size_t size;
    PyObject *account = read_column(row, &field->beside, 0);
    if (!account || find_bytes(writer, account, &data, &size) < 0 ||
        add_number(&writer->out, workchain) < 0 || buffer_add_char(&writer->out, ':') < 0 ||
        buffer_add_hex(&writer->out, data, size) < 0 || buffer_add_char(&writer->out, '"') < 0)
        return -1;
    if (!writer->named || field->kind != NAMED_ACCOUNT)
        return 0;
    return note_account(writer, workchain, data, size);
}

static int add_flag(Buffer *out, PyObject *value)
{
    int flag = PyObject_IsTrue(value);
    return flag < 0 ? -1 : flag ? buffer_add(out, "true", 4) : buffer_add(out, "false", 5);
}

/* Add a value read from columns. */
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
        return add_base64(writer, value);
    case FLAG:
        return add_flag(out, value);
    case TEXT:
        return add_text(out, value, 1);
    case JSON:
    case CURRENCIES:
        return add_text(out, value, 0);
    case BAG:
        return add_bag(out, value) < 0 ? -1 : buffer_add_char(out, '"');
    case ACCOUNT:
    case NAMED_ACCOUNT:
        return add_account(writer, field, row, value);
    case SHARD:
        return add_hex(out, value, 0);
    case OPCODE:
        return add_hex(out, value, 1);
    default:
        return 0;
    }
}

/* Add the value of a field that is written from a whole row. */
static int add_row(Writer *writer, Field *field, PyObject *row)
{
    switch (field->kind) {
    case OPCODE_NAME:
        return add_opcode_name(writer, field, row);
    case BODY:
        return add_body(writer, field, row);
    case OBJECT:
        return write_object(writer, field->inner, row);
    case LIST:
        return add_list(writer, field, row);
    default:
        return 0;
    }
}

/* Read extra currencies; a message of the given kind without any has {}, others have none. */
static PyObject *find_currencies(Field *field, PyObject *row)
{
    int equal = equals_text(field, row);
    if (equal <= 0)
        return equal ? NULL : Py_None;
    PyObject *value = read_column(row, field->columns, 0);
    return value == Py_None ? field->none : value;
}

/* Read a value that is hidden if the column beside it is None or, for some kinds, equal. */
static PyObject *find_beside(Field *field, PyObject *row, int may_lack)
{
    PyObject *other = read_column(row, &field->beside, may_lack);
    PyObject *value = other ? read_column(row, field->columns, may_lack) : NULL;
    if (!value)
        return NULL;
    int hide = field->kind == BASE64_UNLESS ? PyObject_RichCompareBool(value, other, Py_EQ)
                                            : other == Py_None;
    return hide < 0 ? NULL : hide ? Py_None : value;
}

/* Read the value of a field; None if it is missing. */
static PyObject *find_value(Field *field, PyObject *row)
{
    int may_lack = !field->missing.data;
    switch (field->kind) {
    case CURRENCIES:
        return find_currencies(field, row);
    case ACCOUNT:
    case NAMED_ACCOUNT:
    case BASE64_UNLESS:
        return find_beside(field, row, may_lack);
    default:
        return read_column(row, field->columns, may_lack);
    }
}

/* Check whether a field is present in a row; -1 on error. */
static int has_columns(Field *field, PyObject *row)
{
    if (field->kind == CONSTANT)
        return 1;
    if (row == Py_None || field->kind != OBJECT || !field->column_count)
        return row != Py_None;
    for (Py_ssize_t at = 0; at < field->column_count; at++) {
        PyObject *value = read_column(row, &field->columns[at], 0);
        if (!value)
            return -1;
        if (value != Py_None)
            return 1;
    }
    return 0;
}

/* Add the beginning of a field, without its comma if it is the first of its object. */
static int add_lead(Buffer *out, const Lead *lead)
{
    size_t comma = out->data[out->size - 1] == '{';
    return buffer_add(out, lead->data + comma, lead->size - comma);
}

/* Write a field that is written from a whole row. */
static int write_row_field(Writer *writer, Field *field, PyObject *row)
{
    int is_there = has_columns(field, row);
    const Lead *lead = is_there ? &field->lead : &field->missing;
    if (is_there < 0 || (lead->data && add_lead(&writer->out, lead) < 0))
        return -1;
    return is_there ? add_row(writer, field, row) : 0;
}

static int write_field(Writer *writer, Field *field, PyObject *row)
{
    if (field->source >= 0) {
        if (field->source >= writer->source_count) {
            PyErr_SetString(PyExc_IndexError, "a field reads a row that is not there");
            return -1;
        }
        row = writer->sources[field->source];
    }
    if (field->kind >= OPCODE_NAME)
        return write_row_field(writer, field, row);
    PyObject *value = find_value(field, row);
    if (!value)
        return -1;
    int is_missing = value == Py_None;
    const Lead *lead = is_missing ? &field->missing : &field->lead;
    if (lead->data && add_lead(&writer->out, lead) < 0)
        return -1;
    return is_missing ? 0 : add_value(writer, field, row, value);
}

static int write_object(Writer *writer, Layout *layout, PyObject *row)
{
    if (buffer_add_char(&writer->out, '{') < 0)
        return -1;
    for (Py_ssize_t at = 0; at < layout->count; at++)
        if (write_field(writer, &layout->fields[at], row) < 0)
            return -1;
    return buffer_add_char(&writer->out, '}');
}

int add_sources(Writer *writer, Layout *layout, PyObject *const *sources, Py_ssize_t count)
{
    writer->sources = sources;
    writer->source_count = count;
    return write_object(writer, layout, sources[0]);
}

void free_writer(Writer *writer)
{
    Py_XDECREF(writer->body);
    buffer_free(&writer->out);
}
