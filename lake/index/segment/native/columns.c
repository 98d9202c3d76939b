/* Returns columns of messages as Arrow buffers, without creating Python objects per value. */
#include "rows.h"

/* Columns that come from the transaction: see module tonlake.lake.index.segment.columns. */
enum { TX_WORKCHAIN = -6, TX_ACCOUNT, TX_LT, TX_HASH, TX_MC_SEQNO, TX_NOW };

enum { BITS = 0, VARIABLE = -1 };

typedef struct {
    int place, width;
    uint8_t *validity, *data;
    int32_t *offsets;
    Py_ssize_t size, room; /* of data, in bytes */
    bool has_nulls;
} Column;

typedef struct {
    Column *columns;
    Py_ssize_t count, rows;
    Value *values; /* of the current row, by place */
} Columns;

static bool make_room(Column *column, uint64_t size)
{
    if (size > (uint64_t)(INT32_MAX - column->size)) {
        PyErr_SetString(PyExc_OverflowError, "a column has more than 2 GiB");
        return false;
    }
    if (column->size + (Py_ssize_t)size <= column->room)
        return true;
    Py_ssize_t room = 2 * column->size + (Py_ssize_t)size;
    uint8_t *data = PyMem_Realloc(column->data, (size_t)room);
    if (!data) {
        PyErr_NoMemory();
        return false;
    }
    column->data = data;
    column->room = room;
    return true;
}

/* Extract text, bytes or the digits of a number; the caller owns *kept. */
static bool take_bytes(const Value *value, const uint8_t **data, size_t *size, PyObject **kept)
{
    if (value->form == IS_BYTES || value->form == IS_TEXT || value->form == IS_DIGITS) {
        *data = value->data;
        *size = value->size;
        return true;
    }
    if (is_object(value) && PyBytes_Check(value->object))
        return find_held_bytes(value, data, size);
    PyObject *object = make_object(value);
    Py_ssize_t length = 0;
    *kept = object ? PyObject_Str(object) : NULL;
    *data = *kept ? (const uint8_t *)PyUnicode_AsUTF8AndSize(*kept, &length) : NULL;
    *size = (size_t)length;
    Py_XDECREF(object);
    return *data != NULL;
}

static bool write_bytes(Column *column, Py_ssize_t row, const Value *value)
{
    const uint8_t *data;
    size_t size;
    PyObject *kept = NULL;
    bool written = false;
    if (!take_bytes(value, &data, &size, &kept))
        goto done;
    if (column->width == HASH_BYTES) {
        written = size == HASH_BYTES;
        if (written)
            memcpy(column->data + row * HASH_BYTES, data, HASH_BYTES);
        else
            PyErr_SetString(PyExc_ValueError, "a hash must have 32 bytes");
    } else if (make_room(column, size)) {
        memcpy(column->data + column->size, data, size);
        column->size += (Py_ssize_t)size;
        written = true;
    }
done:
    Py_XDECREF(kept);
    return written;
}

static bool write_number(Column *column, Py_ssize_t row, const Value *value)
{
    int64_t number = value->number;
    if (is_object(value))
        number = PyLong_AsLongLong(value->object);
    else if (value->form != IS_NUMBER)
        PyErr_SetString(PyExc_ValueError, "a record of the segment has bytes for a number");
    if (PyErr_Occurred())
        return false;
    if (column->width == BITS)
        column->data[row / 8] |= (uint8_t)((number != 0) << row % 8);
    else /* Arrow's arrays are little-endian here */
        memcpy(column->data + row * column->width, &number, (size_t)column->width);
    return true;
}

static bool write_value(Column *column, Py_ssize_t row, const Value *value)
{
    bool is_null = value->form == IS_NONE, written = true;
    column->has_nulls |= is_null;
    if (!is_null) {
        bool is_bytes = column->width == VARIABLE || column->width == HASH_BYTES;
        column->validity[row / 8] |= (uint8_t)(1 << row % 8);
        written = is_bytes ? write_bytes(column, row, value) : write_number(column, row, value);
    }
    if (column->offsets)
        column->offsets[row + 1] = (int32_t)column->size;
    return written;
}

/* Find a value of the transaction. */
static bool find_own(Source *source, const Context *context, int place, Value *value)
{
    int64_t mc_seqno;
    switch (place) {
    case TX_WORKCHAIN:
        *value = number_value(context->workchain);
        return true;
    case TX_ACCOUNT:
        *value = (Value){.data = context->account, .size = HASH_BYTES, .form = IS_BYTES};
        return true;
    case TX_LT:
        *value = number_value(context->lt);
        return true;
    case TX_HASH:
        return find_hash(source, HASH, context->row, value);
    case TX_MC_SEQNO:
        if (!number_at(source, MC_SEQNO, context->row, &mc_seqno))
            return false;
        *value = number_value(mc_seqno);
        return true;
    default:
        *value = number_value(context->now);
        return true;
    }
}

static bool write_columns(Source *source, const Context *context, const Shape *shape,
                          Columns *columns)
{
    for (Py_ssize_t at = 0; at < columns->count; at++) {
        Column *column = &columns->columns[at];
        Value value;
        if (column->place >= shape->count) {
            PyErr_SetString(PyExc_ValueError, "a record of the segment lacks a column");
            return false;
        }
        if (column->place >= 0)
            value = columns->values[column->place];
        else if (!find_own(source, context, column->place, &value))
            return false;
        if (!write_value(column, columns->rows, &value))
            return false;
    }
    columns->rows++;
    return true;
}

static bool write_message(Source *source, Context *context, PyObject *at, Columns *columns)
{
    long long row;
    PyObject *key;
    Cursor cursor;
    bool found = false;
    if (!PyArg_ParseTuple(at, "LO", &row, &key) ||
        !find_message(source, context, row, key, &cursor, &found))
        return false;
    if (!found)
        return true;
    Shape *shape = read_shape(source, &cursor, 0, MESSAGE);
    return shape && find_values(source, &cursor, context, shape, columns->values) &&
           write_columns(source, context, shape, columns);
}

/* Allocate a column of `rows` values; the width determines the type. */
static bool open_column(const Source *source, Column *column, PyObject *item, Py_ssize_t rows)
{
    if (!PyArg_ParseTuple(item, "ii", &column->place, &column->width))
        return false;
    if (column->place < TX_WORKCHAIN || column->place >= source->widths[MESSAGE] ||
        (column->width != VARIABLE && column->width != HASH_BYTES && column->width < BITS) ||
        (column->width > (int)sizeof(int64_t) && column->width != HASH_BYTES)) {
        PyErr_SetString(PyExc_ValueError, "messages have no such column");
        return false;
    }
    if (column->width != VARIABLE)
        column->size = column->width == BITS ? (rows + 7) / 8 : rows * column->width;
    column->validity = PyMem_Calloc((size_t)(rows + 7) / 8 + 1, 1);
    column->data = PyMem_Calloc((size_t)column->size + 1, 1);
    if (column->width == VARIABLE)
        column->offsets = PyMem_Calloc((size_t)rows + 1, sizeof *column->offsets);
    if (column->validity && column->data && (column->width != VARIABLE || column->offsets))
        return true;
    PyErr_NoMemory();
    return false;
}

static PyObject *close_column(const Column *column, Py_ssize_t rows)
{
    const char *validity = column->has_nulls ? (const char *)column->validity : NULL;
    return Py_BuildValue("y#y#y#", validity, validity ? (rows + 7) / 8 : 0,
                         (const char *)column->offsets,
                         column->offsets ? (rows + 1) * (Py_ssize_t)sizeof(int32_t) : 0,
                         (const char *)column->data, column->size);
}

static PyObject *close_columns(const Columns *columns)
{
    PyObject *found = PyList_New(columns->count);
    for (Py_ssize_t at = 0; found && at < columns->count; at++) {
        PyObject *buffers = close_column(&columns->columns[at], columns->rows);
        if (!buffers || PyList_SetItem(found, at, buffers) < 0)
            Py_CLEAR(found);
    }
    return found ? Py_BuildValue("nN", columns->rows, found) : NULL;
}

static bool write_all(Source *source, PyObject *places, PyObject *items, Columns *columns)
{
    Context context = {.first = 0, .last = 0};
    Py_ssize_t rows = PyList_Size(places);
    bool written = true;
    for (Py_ssize_t at = 0; written && at < columns->count; at++)
        written = open_column(source, &columns->columns[at], PyTuple_GetItem(items, at), rows);
    for (Py_ssize_t at = 0; written && at < rows; at++)
        written = write_message(source, &context, PyList_GetItem(places, at), columns);
    return written;
}

PyObject *read_columns(PyObject *self, PyObject *args)
{
    Source *source = (Source *)self;
    PyObject *places, *items, *found = NULL;
    if (!PyArg_ParseTuple(args, "O!O!:read_columns", &PyList_Type, &places, &PyTuple_Type, &items))
        return NULL;
    Columns columns = {.count = PyTuple_Size(items)};
    columns.columns = PyMem_Calloc((size_t)columns.count + 1, sizeof *columns.columns);
    columns.values = PyMem_Calloc((size_t)source->widths[MESSAGE] + 1, sizeof *columns.values);
    if (!columns.columns || !columns.values)
        PyErr_NoMemory();
    else if (write_all(source, places, items, &columns))
        found = close_columns(&columns);
    for (Py_ssize_t at = 0; columns.columns && at < columns.count; at++) {
        PyMem_Free(columns.columns[at].validity);
        PyMem_Free(columns.columns[at].offsets);
        PyMem_Free(columns.columns[at].data);
    }
    PyMem_Free(columns.columns);
    PyMem_Free(columns.values);
    return found;
}
