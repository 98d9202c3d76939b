/* The Python type of decoded row groups: finds rows within bounds, and returns values. */
#include "find.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    Py_ssize_t rows, columns;
    Column *of;
    PyObject *schema, *array; /* capsules, which own the memory */
} Group;

static bool open_columns(Group *group, PyObject *batch)
{
    const struct ArrowSchema *schema = PyCapsule_GetPointer(group->schema, "arrow_schema");
    const struct ArrowArray *array = PyCapsule_GetPointer(group->array, "arrow_array");
    if (!schema || !array)
        return false;
    if (strcmp(schema->format, "+s") || array->offset) {
        PyErr_SetString(PyExc_TypeError, "a row group must be a whole record batch");
        return false;
    }
    group->rows = (Py_ssize_t)array->length;
    group->of = PyMem_Calloc((size_t)schema->n_children + 1, sizeof *group->of);
    if (!group->of) {
        PyErr_NoMemory();
        return false;
    }
    for (; group->columns < schema->n_children; group->columns++) {
        Column *column = &group->of[group->columns];
        if (!open_column(column, schema->children[group->columns],
                         array->children[group->columns])) {
            close_column(column);
            return false;
        }
        if (column->kind == OTHER)
            column->arrow = PyObject_CallMethod(batch, "column", "n", group->columns);
        if (column->kind == OTHER && !column->arrow) {
            close_column(column);
            return false;
        }
    }
    return true;
}

static PyObject *group_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)names;
    PyObject *batch;
    if (!PyArg_ParseTuple(args, "O:Group", &batch))
        return NULL;
    PyObject *pair = PyObject_CallMethod(batch, "__arrow_c_array__", NULL);
    Group *group = pair ? PyObject_New(Group, type) : NULL;
    if (group) {
        memset((char *)group + sizeof(PyObject), 0, sizeof *group - sizeof(PyObject));
        if (!PyArg_ParseTuple(pair, "OO", &group->schema, &group->array)) {
            group->schema = group->array = NULL;
            Py_CLEAR(group);
        } else {
            Py_INCREF(group->schema);
            Py_INCREF(group->array);
            if (!open_columns(group, batch))
                Py_CLEAR(group);
        }
    }
    Py_XDECREF(pair);
    return (PyObject *)group;
}

static void group_dealloc(PyObject *self)
{
    Group *group = (Group *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (Py_ssize_t at = 0; at < group->columns; at++)
        close_column(&group->of[at]);
    PyMem_Free(group->of);
    Py_XDECREF(group->schema);
    Py_XDECREF(group->array);
    PyObject_Free(self);
    Py_DECREF(type);
}

static const Column *column_at(const Group *group, Py_ssize_t place)
{
    if (place >= 0 && place < group->columns)
        return &group->of[place];
    PyErr_SetString(PyExc_IndexError, "a row group has no such column");
    return NULL;
}

/* Parse the number of a row in a list; -1 with an error if there is no such row. */
static int64_t row_at(const Group *group, PyObject *numbers, Py_ssize_t at)
{
    Py_ssize_t row = PyLong_AsSsize_t(PyList_GetItem(numbers, at));
    if (row >= 0 && row < group->rows)
        return row;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "a row group has no such row");
    return -1;
}

static bool add_row(PyObject *found, int64_t row)
{
    PyObject *number = PyLong_FromLongLong(row);
    bool added = number && PyList_Append(found, number) == 0;
    Py_XDECREF(number);
    return added;
}

/* Return the rows within a bound; numbers is the list of candidates, or None for all rows. */
static PyObject *list_fitting(const Group *group, const Column *column, const Bound *bound,
                              PyObject *numbers)
{
    PyObject *found = PyList_New(0);
    Py_ssize_t count = numbers == Py_None ? group->rows : PyList_Size(numbers);
    for (Py_ssize_t at = 0; found && at < count; at++) {
        int64_t row = numbers == Py_None ? at : row_at(group, numbers, at);
        if (row < 0 || (fits(column, bound, row) && !add_row(found, row)))
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *group_find(PyObject *self, PyObject *args)
{
    PyObject *values, *numbers;
    Py_ssize_t place;
    int is_range;
    if (!PyArg_ParseTuple(args, "nO!pO:find", &place, &PyList_Type, &values, &is_range, &numbers))
        return NULL;
    if (numbers != Py_None && !PyList_Check(numbers)) {
        PyErr_SetString(PyExc_TypeError, "numbers of rows must be a list");
        return NULL;
    }
    const Column *column = column_at((Group *)self, place);
    if (!column)
        return NULL;
    Bound bound;
    PyObject *found = NULL;
    if (open_bound(&bound, column, values, is_range))
        found = list_fitting((Group *)self, column, &bound, numbers);
    close_bound(&bound);
    return found;
}

static PyObject *group_values(PyObject *self, PyObject *args)
{
    const Group *group = (Group *)self;
    PyObject *numbers;
    Py_ssize_t place;
    if (!PyArg_ParseTuple(args, "nO!:values", &place, &PyList_Type, &numbers))
        return NULL;
    const Column *column = column_at(group, place);
    Py_ssize_t count = PyList_Size(numbers);
    PyObject *found = column ? PyList_New(count) : NULL;
    for (Py_ssize_t at = 0; found && at < count; at++) {
        int64_t row = row_at(group, numbers, at);
        PyObject *value = row < 0 ? NULL : read_value(column, row);
        if (!value || PyList_SetItem(found, at, value) < 0)
            Py_CLEAR(found);
    }
    return found;
}

/* Return a row as a dict of the named columns. */
static PyObject *read_row(const Group *group, int64_t row, PyObject *names, PyObject *places)
{
    PyObject *found = PyDict_New();
    for (Py_ssize_t at = 0; found && at < PyTuple_Size(names); at++) {
        PyObject *given = PyTuple_GetItem(places, at), *value = NULL;
        if (given == Py_None)
            value = Py_NewRef(Py_None);
        else if (given) {
            Py_ssize_t place = PyLong_AsSsize_t(given);
            const Column *column = PyErr_Occurred() ? NULL : column_at(group, place);
            value = column ? read_value(column, row) : NULL;
        }
        if (!value || PyDict_SetItem(found, PyTuple_GetItem(names, at), value) < 0)
            Py_CLEAR(found);
        Py_XDECREF(value);
    }
    return found;
}

static PyObject *group_rows(PyObject *self, PyObject *args)
{
    const Group *group = (Group *)self;
    PyObject *names, *places, *numbers;
    if (!PyArg_ParseTuple(args, "O!O!O!:rows", &PyTuple_Type, &names, &PyTuple_Type, &places,
                          &PyList_Type, &numbers))
        return NULL;
    Py_ssize_t count = PyList_Size(numbers);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t at = 0; found && at < count; at++) {
        int64_t number = row_at(group, numbers, at);
        PyObject *row = number < 0 ? NULL : read_row(group, number, names, places);
        if (!row || PyList_SetItem(found, at, row) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyMethodDef group_methods[] = {
    {"find", group_find, METH_VARARGS,
     "Return the numbers of rows within a bound: the place of the column, the sorted values, "
     "whether they are the least and the greatest, and the rows to compare or None."},
    {"values", group_values, METH_VARARGS,
     "Return the values of a column, given its place and the numbers of the rows."},
    {"rows", group_rows, METH_VARARGS,
     "Return rows as dicts, given names of columns, their places or None, and numbers of rows."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef group_members[] = {
    {"num_rows", T_PYSSIZET, offsetof(Group, rows), READONLY, "The number of rows."},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)group_new},     {Py_tp_dealloc, (void *)group_dealloc},
    {Py_tp_methods, group_methods},     {Py_tp_members, group_members},
    {Py_tp_doc, (void *)"A record batch of Arrow, read row by row."},
    {0, NULL},
};

PyType_Spec group_spec = {
    .name = "tonlake.lake.index._rows.Group",
    .basicsize = sizeof(Group),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
