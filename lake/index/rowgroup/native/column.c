/* Columns of a decoded row group: their types in Arrow, and their values as Python objects. */
#include "column.h"

#include <stdlib.h>

/* Derive the kind of a column from its Arrow format. */
static ColumnKind name_kind(const struct ArrowSchema *schema, int64_t *width)
{
    const char *format = schema->format;
    if (schema->dictionary)
        return OTHER;
    if (!strncmp(format, "w:", 2)) {
        *width = atoll(format + 2);
        return FIXED_BYTES;
    }
    if (!strcmp(format, "+l"))
        return LIST;
    if (format[0] == 0 || format[1] != 0)
        return OTHER;
    switch (format[0]) {
    case 'b':
        return FLAG;
    case 'c':
        *width = sizeof(int8_t);
        return NUMBER;
    case 'i':
        *width = sizeof(int32_t);
        return NUMBER;
    case 'l':
        *width = sizeof(int64_t);
        return NUMBER;
    case 'z':
        return BYTES;
    case 'u':
        return TEXT;
    default:
        return OTHER;
    }
}

bool open_column(Column *column, const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    column->kind = name_kind(schema, &column->width);
    column->length = array->length;
    column->offset = array->offset;
    if (column->kind == OTHER)
        return true;
    column->valid = array->buffers[0];
    if (column->kind == BYTES || column->kind == TEXT || column->kind == LIST)
        column->ends = array->buffers[1];
    if (column->kind != LIST) {
        column->data = array->buffers[column->ends ? 2 : 1];
        return true;
    }
    column->items = PyMem_Calloc(1, sizeof *column->items);
    if (!column->items) {
        PyErr_NoMemory();
        return false;
    }
    if (!open_column(column->items, schema->children[0], array->children[0]))
        return false;
    if (column->items->kind == OTHER || column->items->kind == LIST)
        column->kind = OTHER;
    return true;
}

void close_column(Column *column)
{
    if (column->items)
        close_column(column->items);
    PyMem_Free(column->items);
    Py_XDECREF(column->arrow);
}

static PyObject *read_list(const Column *column, int64_t at)
{
    const int32_t *ends = column->ends + column->offset + at;
    PyObject *found = PyList_New(ends[1] - ends[0]);
    for (int32_t item = ends[0]; found && item < ends[1]; item++) {
        PyObject *value = read_value(column->items, item);
        if (!value || PyList_SetItem(found, item - ends[0], value) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *read_other(const Column *column, int64_t at)
{
    PyObject *number = PyLong_FromLongLong(at);
    PyObject *scalar = number ? PyObject_GetItem(column->arrow, number) : NULL;
    PyObject *value = scalar ? PyObject_CallMethod(scalar, "as_py", NULL) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(scalar);
    return value;
}

PyObject *read_value(const Column *column, int64_t at)
{
    if (column->kind == OTHER)
        return read_other(column, at);
    if (!is_there(column, at))
        return Py_NewRef(Py_None);
    Span span;
    switch (column->kind) {
    case FLAG:
        return PyBool_FromLong(flag_at(column, at));
    case NUMBER:
        return PyLong_FromLongLong(number_at(column, at));
    case LIST:
        return read_list(column, at);
    case TEXT:
        span = span_at(column, at);
        return PyUnicode_DecodeUTF8((const char *)span.data, (Py_ssize_t)span.size, NULL);
    default:
        span = span_at(column, at);
        return PyBytes_FromStringAndSize((const char *)span.data, (Py_ssize_t)span.size);
    }
}
