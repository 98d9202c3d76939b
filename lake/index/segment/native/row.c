/* Rows as Python objects: one type per table, created once the table's columns are known. */
#include "rows.h"

#include <structmember.h>

static void row_dealloc(PyObject *self)
{
    Row *row = (Row *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (Py_ssize_t at = 0; at < row->count; at++)
        Py_XDECREF(row->values[at]);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *row_get(PyObject *self, PyObject *args)
{
    PyObject *name, *missing = Py_None;
    if (!PyArg_ParseTuple(args, "O|O:get", &name, &missing))
        return NULL;
    PyObject *value = PyObject_GetAttr(self, name);
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return Py_NewRef(missing);
}

/* Return a column by its place in the type's __columns__. */
static PyObject *row_item(PyObject *self, Py_ssize_t at)
{
    Row *row = (Row *)self;
    if (at < 0 || at >= row->count) {
        PyErr_SetString(PyExc_IndexError, "a row has no such place");
        return NULL;
    }
    return Py_NewRef(row->values[at] ? row->values[at] : Py_None);
}

static PyMethodDef row_methods[] = {
    {"get", row_get, METH_VARARGS, "Return a column, or a default if there is none."},
    {NULL, NULL, 0, NULL},
};

/* Copy a string permanently: a type's names live as long as the process. */
static const char *keep_text(PyObject *text)
{
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(text, &size);
    char *copy = data ? PyMem_Malloc((size_t)size + 1) : NULL;
    if (copy)
        memcpy(copy, data, (size_t)size + 1);
    return copy;
}

PyObject *make_row_type(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *name, *fields;
    if (!PyArg_ParseTuple(args, "UO!:make_row_type", &name, &PyTuple_Type, &fields))
        return NULL;
    Py_ssize_t count = PyTuple_Size(fields);
    PyMemberDef *members = PyMem_Calloc((size_t)count + 1, sizeof *members);
    if (!members)
        return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at < count; at++) {
        members[at].name = keep_text(PyTuple_GetItem(fields, at));
        members[at].type = T_OBJECT;
        members[at].offset = (Py_ssize_t)(offsetof(Row, values) + (size_t)at * sizeof(PyObject *));
        if (!members[at].name)
            return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)row_dealloc},     {Py_tp_members, members},
        {Py_tp_methods, row_methods},             {Py_mp_subscript, (void *)PyObject_GetAttr},
        {Py_sq_item, (void *)row_item},           {Py_tp_doc, (void *)"A row of a table."},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = keep_text(name),
        .basicsize = (int)(sizeof(Row) + (size_t)count * sizeof(PyObject *)),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    PyObject *type = spec.name ? PyType_FromSpec(&spec) : NULL;
    PyObject *first = PyLong_FromSize_t(offsetof(Row, values));
    /* Other extensions read a column directly by place: see read_column in api/text/native. */
    if (type && (!first || PyObject_SetAttrString(type, "__columns__", fields) < 0 ||
                 PyObject_SetAttrString(type, "__first_column__", first) < 0))
        Py_CLEAR(type);
    Py_XDECREF(first);
    return type;
}

Row *new_row(PyTypeObject *type, Py_ssize_t count)
{
    Row *row = PyObject_New(Row, type);
    if (row) {
        row->count = count;
        memset(row->values, 0, (size_t)count * sizeof(PyObject *));
    }
    return row;
}
