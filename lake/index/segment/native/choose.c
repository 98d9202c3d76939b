/* Filters messages before they are decoded, and returns their sort keys and positions. */
#include "rows.h"

/* A column and its bounds: numbers or bytes between both, an equal text, or NULL. */
typedef struct {
    Py_ssize_t column;
    PyObject *low, *high; /* borrowed; None: it must be NULL */
    long long least, most;
} Filter;

/* A selection: filters, the columns to return, and the segment that owns the results. */
typedef struct {
    Filter *filters;
    Py_ssize_t filter_count;
    PyObject *shown, *owner; /* borrowed */
    Value *values;           /* of the current message, by place */
} Choice;

static int fail_type(void)
{
    PyErr_SetString(PyExc_ValueError, "a column of the segment has values of another type");
    return -1;
}

/* Parse a bound, clamping numbers to 64 bits. */
static long long read_bound(PyObject *bound)
{
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(bound, &overflow);
    return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : number;
}

static bool open_filter(const Source *source, PyObject *item, Filter *filter)
{
    if (!PyArg_ParseTuple(item, "nOO", &filter->column, &filter->low, &filter->high))
        return false;
    if (filter->column < 0 || filter->column >= source->widths[MESSAGE] ||
        Py_TYPE(filter->low) != Py_TYPE(filter->high)) {
        PyErr_SetString(PyExc_ValueError, "a filter must be a column and two bounds of one type");
        return false;
    }
    if (PyLong_Check(filter->low)) {
        filter->least = read_bound(filter->low);
        filter->most = read_bound(filter->high);
    }
    return !PyErr_Occurred();
}

/* Compare bytes like Python. */
static int compare_bytes(const uint8_t *data, uint64_t size, PyObject *bound)
{
    uint64_t other = (uint64_t)PyBytes_Size(bound);
    int order = memcmp(data, PyBytes_AsString(bound), (size_t)(size < other ? size : other));
    return order ? order : (size > other) - (size < other);
}

/* Check a value against a filter: 1 it passes, 0 it does not, -1 an error. */
static int fits(const Filter *filter, const Value *value)
{
    const uint8_t *data;
    size_t size;
    if (value->form == IS_NONE || filter->low == Py_None)
        return value->form == IS_NONE && filter->low == Py_None;
    if (PyUnicode_Check(filter->low))
        return is_object(value) ? PyObject_RichCompareBool(value->object, filter->low, Py_EQ) : 0;
    if (PyBytes_Check(filter->low)) {
        if (!find_held_bytes(value, &data, &size))
            return fail_type();
        return compare_bytes(data, size, filter->low) >= 0 &&
               compare_bytes(data, size, filter->high) <= 0;
    }
    int64_t number = value->number;
    if (is_object(value) && PyLong_Check(value->object))
        number = PyLong_AsLongLong(value->object);
    else if (value->form != IS_NUMBER)
        return fail_type();
    if (number == -1 && PyErr_Occurred())
        return -1;
    return filter->least <= number && number <= filter->most;
}

/* Build the result row of a message, with the fields listed in module record. */
static PyObject *show_message(Source *source, const Context *context, const Choice *choice,
                              const Shape *shape, uint64_t place)
{
    Py_ssize_t count = PyTuple_Size(choice->shown);
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(source->types, KINDS + 1);
    Row *row = new_row(type, count + 5, 0, (PyObject *)source);
    for (Py_ssize_t at = 0; row && at < count; at++) {
        Py_ssize_t column = PyLong_AsSsize_t(PyTuple_GetItem(choice->shown, at));
        if (column < 0 || column >= shape->count) {
            PyErr_SetString(PyExc_ValueError, "a record of the segment lacks a column");
            Py_CLEAR(row);
        } else {
            row->values[at] = choice->values[column];
        }
    }
    if (row && !find_hash(source, HASH, context->row, &row->values[count + 1]))
        Py_CLEAR(row);
    if (!row)
        return NULL;
    row->values[count] = number_value(context->lt);
    give_object(row, count + 2, Py_NewRef(choice->owner));
    row->values[count + 3] = number_value(context->row);
    row->values[count + 4] = number_value((int64_t)place);
    return (PyObject *)row;
}

/* Filter by the constant columns of a shape, or by its open ones: 1 all pass, 0 one does not,
   -1 an error. */
static int fit_all(const Choice *choice, const Shape *shape, bool constant)
{
    for (Py_ssize_t at = 0; at < choice->filter_count; at++) {
        const Filter *filter = &choice->filters[at];
        if (filter->column >= shape->count)
            return fail_type();
        if ((shape->codes[filter->column] == '.') != constant)
            continue;
        const Value *values = constant ? shape->values : choice->values;
        int fitting = fits(filter, &values[filter->column]);
        if (fitting < 1)
            return fitting;
    }
    return 1;
}

/* Append the next message if it passes the filters. */
static bool choose_message(Source *source, Context *context, const Choice *choice, Cursor *cursor,
                           uint64_t place, PyObject *found)
{
    Cursor values = *cursor;
    Shape *shape = read_shape(source, &values, 0, MESSAGE);
    int fitting = shape ? fit_all(choice, shape, true) : -1;
    if (fitting == 0) {
        *cursor = values;
        return skip_row(source, cursor, shape);
    }
    if (fitting < 0 || !find_values(source, &values, context, shape, choice->values))
        return false;
    *cursor = values;
    fitting = fit_all(choice, shape, false);
    if (fitting < 1)
        return fitting == 0;
    PyObject *row = show_message(source, context, choice, shape, place);
    bool added = row && PyList_Append(found, row) == 0;
    Py_XDECREF(row);
    return added;
}

/* Check all messages of a row. */
static bool choose_from_row(Source *source, Context *context, const Choice *choice, int64_t row,
                            PyObject *found)
{
    Cursor cursor;
    uint64_t count;
    bool chosen = open_messages(source, context, row, &cursor, &count);
    for (uint64_t place = 0; chosen && place < count; place++)
        chosen = choose_message(source, context, choice, &cursor, place, found);
    return chosen;
}

/* Check the message at a place of a row. */
static bool choose_place(Source *source, Context *context, const Choice *choice, PyObject *item,
                         PyObject *found)
{
    Cursor cursor;
    long long row;
    PyObject *place;
    bool is_there = false;
    if (!PyArg_ParseTuple(item, "LO!", &row, &PyLong_Type, &place))
        return false;
    bool chosen = find_message(source, context, row, place, &cursor, &is_there);
    chosen = chosen && choose_message(source, context, choice, &cursor,
                                      PyLong_AsUnsignedLongLong(place), found);
    return chosen;
}

static PyObject *choose_all(Source *source, PyObject *items, const Choice *choice)
{
    Context context = {.first = 0, .last = 0};
    Py_ssize_t count = PyList_Size(items);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at < count; at++) {
        PyObject *item = PyList_GetItem(items, at);
        long long row = PyLong_Check(item) ? PyLong_AsLongLong(item) : -1;
        bool chosen = !PyErr_Occurred() &&
                      (PyLong_Check(item) ? choose_from_row(source, &context, choice, row, found)
                                          : choose_place(source, &context, choice, item, found));
        if (!chosen)
            Py_CLEAR(found);
    }
    return found;
}

PyObject *choose_messages(PyObject *self, PyObject *args)
{
    Source *source = (Source *)self;
    PyObject *items, *filters, *found = NULL;
    Choice choice = {0};
    if (!PyArg_ParseTuple(args, "O!O!O!O:choose_messages", &PyList_Type, &items, &PyTuple_Type,
                          &filters, &PyTuple_Type, &choice.shown, &choice.owner))
        return NULL;
    choice.filter_count = PyTuple_Size(filters);
    choice.filters = PyMem_Calloc((size_t)choice.filter_count + 1, sizeof *choice.filters);
    choice.values = PyMem_Calloc((size_t)source->widths[MESSAGE] + 1, sizeof *choice.values);
    bool opened = choice.filters && choice.values;
    if (!opened)
        PyErr_NoMemory();
    for (Py_ssize_t at = 0; opened && at < choice.filter_count; at++)
        opened = open_filter(source, PyTuple_GetItem(filters, at), &choice.filters[at]);
    if (opened)
        found = choose_all(source, items, &choice);
    PyMem_Free(choice.filters);
    PyMem_Free(choice.values);
    return found;
}
