/* Rows as Python objects: one type per table, created once the table's columns are known. */
#include "rows.h"

#include <stddef.h>

static void row_dealloc(PyObject *self)
{
    Row *row = (Row *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (Py_ssize_t at = 0; row->owns && at < row->count; at++)
        if (row->values[at].form == IS_OWNED)
            Py_DECREF(row->values[at].object);
    Py_XDECREF(row->owner);
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

/* Return a column by its place in the type's __columns__; the row keeps the new object. */
static PyObject *row_item(PyObject *self, Py_ssize_t at)
{
    Row *row = (Row *)self;
    if (at < 0 || at >= row->count) {
        PyErr_SetString(PyExc_IndexError, "a row has no such place");
        return NULL;
    }
    PyObject *object = make_object(&row->values[at]);
    if (object && row->values[at].form > IS_OWNED)
        give_object(row, at, Py_NewRef(object));
    return object;
}

static PyObject *row_column(PyObject *self, void *place)
{
    return row_item(self, (Py_ssize_t)(intptr_t)place);
}

static int row_set_column(PyObject *self, PyObject *object, void *place)
{
    if (!object) {
        PyErr_SetString(PyExc_TypeError, "a row keeps all of its columns");
        return -1;
    }
    give_object((Row *)self, (Py_ssize_t)(intptr_t)place, Py_NewRef(object));
    return 0;
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
    PyGetSetDef *columns = PyMem_Calloc((size_t)count + 1, sizeof *columns);
    if (!columns)
        return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at < count; at++) {
        columns[at].name = keep_text(PyTuple_GetItem(fields, at));
        columns[at].get = row_column;
        columns[at].set = row_set_column;
        columns[at].closure = (void *)(intptr_t)at;
        if (!columns[at].name)
            return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)row_dealloc},     {Py_tp_getset, columns},
        {Py_tp_methods, row_methods},             {Py_mp_subscript, (void *)PyObject_GetAttr},
        {Py_sq_item, (void *)row_item},           {Py_tp_doc, (void *)"A row of a table."},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = keep_text(name),
        .basicsize = (int)(sizeof(Row) + (size_t)count * sizeof(Value)),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    PyObject *type = spec.name ? PyType_FromSpec(&spec) : NULL;
    PyObject *first = PyLong_FromSize_t(offsetof(Row, values));
    /* Other extensions read a Value directly by place: see read_column in api/text/native. */
    if (type && (!first || PyObject_SetAttrString(type, "__columns__", fields) < 0 ||
                 PyObject_SetAttrString(type, "__first_column__", first) < 0))
        Py_CLEAR(type);
    Py_XDECREF(first);
    return type;
}

Row *new_row(PyTypeObject *type, Py_ssize_t count, Py_ssize_t filled, PyObject *owner)
{
    Row *row = PyObject_New(Row, type);
    if (row) {
        row->count = count;
        row->owner = Py_XNewRef(owner);
        row->owns = false;
        memset(row->values + filled, 0, (size_t)(count - filled) * sizeof(Value));
    }
    return row;
}

void give_object(Row *row, Py_ssize_t at, PyObject *object)
{
    Value before = row->values[at];
    row->values[at] = own_object(object);
    row->owns = true;
    if (before.form == IS_OWNED)
        Py_DECREF(before.object);
}
