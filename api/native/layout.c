/* Layouts: tuples (kind, source, column, prefix, missing, other) taken apart once. */
#include "layout.h"

#include <string.h>

static const char CAPSULE[] = "api._json.layout";

static void drop_column(Column *column)
{
    Py_XDECREF(column->name);
    Py_XDECREF((PyObject *)column->type);
}

static void free_field(Field *field)
{
    for (Py_ssize_t at = 0; at < field->column_count; at++)
        drop_column(&field->columns[at]);
    PyMem_Free(field->columns);
    drop_column(&field->beside);
    Py_XDECREF(field->prefix);
    Py_XDECREF(field->missing);
    Py_XDECREF(field->other);
}

static void free_layout(PyObject *capsule)
{
    Layout *layout = PyCapsule_GetPointer(capsule, CAPSULE);
    for (Py_ssize_t at = 0; layout && at < layout->count; at++)
        free_field(&layout->fields[at]);
    PyMem_Free(layout);
}

static int read_text(PyObject *bytes, const char **text, Py_ssize_t *size)
{
    char *data = NULL;
    if (PyBytes_AsStringAndSize(bytes, &data, size) < 0)
        return -1;
    *text = data;
    return 0;
}

/* Take the columns of a field: a name, a tuple of names, or None. */
static int take_columns(Field *field, PyObject *given)
{
    int many = field->any_of = PyTuple_Check(given);
    Py_ssize_t count = many ? PyTuple_Size(given) : given != Py_None;
    field->columns = PyMem_Calloc((size_t)count + 1, sizeof *field->columns);
    if (!field->columns) {
        PyErr_NoMemory();
        return -1;
    }
    for (; field->column_count < count; field->column_count++) {
        PyObject *name = many ? PyTuple_GetItem(given, field->column_count) : given;
        field->columns[field->column_count].name = Py_NewRef(name);
    }
    if (field->kind == ACCOUNT || field->kind == NAMED_ACCOUNT || field->kind == BASE64_UNLESS)
        field->beside.name = Py_NewRef(field->other);
    int needed = field->kind != CONSTANT && field->kind != CALL && field->kind != OBJECT &&
                 field->kind != LIST;
    if (needed && count != 1) {
        PyErr_SetString(PyExc_ValueError, "a field needs one column");
        return -1;
    }
    return 0;
}

static int compile_field(Field *field, PyObject *spec)
{
    int kind;
    PyObject *column, *prefix, *missing, *other;
    if (!PyArg_ParseTuple(spec, "inOSOO:field", &kind, &field->source, &column, &prefix, &missing,
                          &other))
        return -1;
    if (kind < 0 || kind >= KINDS) {
        PyErr_SetString(PyExc_ValueError, "a field has an unknown kind");
        return -1;
    }
    field->kind = (Kind)kind;
    field->prefix = Py_NewRef(prefix);
    field->missing = Py_NewRef(missing);
    field->other = Py_NewRef(other);
    if (take_columns(field, column) < 0)
        return -1;
    if (read_text(prefix, &field->prefix_text, &field->prefix_size) < 0)
        return -1;
    if (missing != Py_None && read_text(missing, &field->missing_text, &field->missing_size) < 0)
        return -1;
    if (field->kind == OBJECT || field->kind == LIST) {
        field->inner = PyCapsule_GetPointer(other, CAPSULE);
        if (!field->inner)
            return -1;
    }
    return 0;
}

PyObject *compile_layout(PyObject *self, PyObject *fields)
{
    (void)self;
    if (!PyTuple_Check(fields))
        return PyErr_Format(PyExc_TypeError, "a layout is a tuple of fields");
    Py_ssize_t count = PyTuple_Size(fields);
    Layout *layout = PyMem_Calloc(1, sizeof *layout + (size_t)count * sizeof(Field));
    if (!layout)
        return PyErr_NoMemory();
    layout->count = count;
    PyObject *capsule = PyCapsule_New(layout, CAPSULE, free_layout);
    if (!capsule) {
        PyMem_Free(layout);
        return NULL;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *spec = PyTuple_GetItem(fields, at);
        if (!spec || !PyTuple_Check(spec) || compile_field(&layout->fields[at], spec) < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a field of a layout is a tuple");
            Py_DECREF(capsule);
            return NULL;
        }
    }
    return capsule;
}

Layout *open_layout(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

/* Note where the rows of a type have a column, if it says so; -1: it does not have it. */
static int learn_place(Column *column, PyTypeObject *type)
{
    PyObject *names = PyObject_GetAttrString((PyObject *)type, "__columns__");
    if (!names) {
        PyErr_Clear();
        return 0;
    }
    Py_ssize_t at = PySequence_Index(names, column->name);
    Py_DECREF(names);
    if (at < 0)
        PyErr_Clear();
    PyTypeObject *before = column->type;
    column->type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    column->at = at;
    Py_XDECREF((PyObject *)before);
    return at >= 0;
}

PyObject *read_column(PyObject *row, Column *column, int may_lack)
{
    PyTypeObject *type = Py_TYPE(row);
    if (type == column->type ? column->at >= 0 : !PyDict_CheckExact(row) && learn_place(column, type))
        return PySequence_GetItem(row, column->at);
    PyObject *value = PyObject_GetItem(row, column->name);
    if (value || !may_lack)
        return value;
    if (!PyErr_ExceptionMatches(PyExc_KeyError) && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return NULL;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}
