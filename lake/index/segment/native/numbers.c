/* The Python type: a sequence over packed bytes. */
#include "numbers.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    Py_buffer view;
    PyObject *data;
    Packed packed;
} Numbers;

static PyObject *numbers_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *data;
    (void)names;
    if (!PyArg_ParseTuple(args, "O:Numbers", &data))
        return NULL;
    Numbers *numbers = PyObject_New(Numbers, type);
    if (!numbers)
        return NULL;
    memset((char *)numbers + sizeof(PyObject), 0, sizeof *numbers - sizeof(PyObject));
    if (PyObject_GetBuffer(data, &numbers->view, PyBUF_SIMPLE) < 0 ||
        !open_packed(&numbers->view, &numbers->packed)) {
        Py_DECREF(numbers);
        return NULL;
    }
    numbers->data = Py_NewRef(data);
    return (PyObject *)numbers;
}

static void numbers_dealloc(PyObject *self)
{
    Numbers *numbers = (Numbers *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (numbers->view.obj)
        PyBuffer_Release(&numbers->view);
    Py_XDECREF(numbers->data);
    PyObject_Free(self);
    Py_DECREF(type);
}

static Py_ssize_t numbers_length(PyObject *self)
{
    return (Py_ssize_t)((Numbers *)self)->packed.count;
}

static PyObject *numbers_item(PyObject *self, Py_ssize_t at)
{
    const Packed *packed = &((Numbers *)self)->packed;
    if (at < 0 || at >= packed->count) {
        PyErr_SetString(PyExc_IndexError, "a place is outside of its array");
        return NULL;
    }
    return PyLong_FromLongLong(packed_at(packed, at));
}

static PyObject *numbers_subscript(PyObject *self, PyObject *key)
{
    const Packed *packed = &((Numbers *)self)->packed;
    Py_ssize_t start, stop, step;
    if (!PySlice_Check(key)) {
        Py_ssize_t at = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (at == -1 && PyErr_Occurred())
            return NULL;
        return numbers_item(self, at < 0 ? at + (Py_ssize_t)packed->count : at);
    }
    if (PySlice_Unpack(key, &start, &stop, &step) < 0)
        return NULL;
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)packed->count, &start, &stop, step);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t at = 0; found && at < count; at++, start += step) {
        PyObject *number = PyLong_FromLongLong(packed_at(packed, start));
        if (!number || PyList_SetItem(found, at, number) < 0)
            Py_CLEAR(found);
    }
    return found;
}

/* Return a list of the results of a function for each item of a list. */
static PyObject *map_list(PyObject *self, PyObject *items, binaryfunc show)
{
    if (!PyList_Check(items)) {
        PyErr_SetString(PyExc_TypeError, "expected a list");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(items);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t at = 0; found && at < count; at++) {
        PyObject *shown = show(self, PyList_GetItem(items, at));
        if (!shown || PyList_SetItem(found, at, shown) < 0)
            Py_CLEAR(found);
    }
    return found;
}

enum { KEY_BYTES = 8 };

/* Return the first place of a hash's leading bytes, as one number, among sorted ones, or -1. */
static PyObject *find_hash(PyObject *self, PyObject *hash)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(hash, &data, &size) < 0)
        return NULL;
    uint64_t key = 0;
    for (Py_ssize_t at = 0; at < size && at < KEY_BYTES; at++)
        key = key << 8 | (uint8_t)data[at];
    return PyLong_FromLongLong(find_packed(&((Numbers *)self)->packed, key));
}

static PyObject *numbers_find_hashes(PyObject *self, PyObject *hashes)
{
    return map_list(self, hashes, find_hash);
}

static PyObject *numbers_find(PyObject *self, PyObject *key)
{
    unsigned long long number = PyLong_AsUnsignedLongLong(key);
    if (PyErr_Occurred())
        return NULL;
    return PyLong_FromLongLong(find_packed(&((Numbers *)self)->packed, number));
}

/* Parse the range of places that the numbers must lie in. */
static bool check_places(const Packed *packed, long long start, long long end)
{
    if (start >= 0 && start <= end && end <= packed->count)
        return true;
    PyErr_SetString(PyExc_IndexError, "a place is outside of its array");
    return false;
}

static PyObject *numbers_list_between(PyObject *self, PyObject *args)
{
    const Packed *packed = &((Numbers *)self)->packed;
    long long start, end, low, high;
    if (!PyArg_ParseTuple(args, "LLLL:list_between", &start, &end, &low, &high) ||
        !check_places(packed, start, end))
        return NULL;
    PyObject *found = PyList_New(0);
    for (int64_t at = start; found && at < end; at++) {
        int64_t number = packed_at(packed, at);
        if (number < low || number >= high)
            continue;
        PyObject *place = PyLong_FromLongLong(at);
        if (!place || PyList_Append(found, place) < 0)
            Py_CLEAR(found);
        Py_XDECREF(place);
    }
    return found;
}

static PyObject *item_at(PyObject *self, PyObject *at)
{
    Py_ssize_t place = PyLong_AsSsize_t(at);
    return place == -1 && PyErr_Occurred() ? NULL : numbers_item(self, place);
}

static PyObject *numbers_list_at(PyObject *self, PyObject *places)
{
    return map_list(self, places, item_at);
}

static PyObject *numbers_cut_bits(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong((long)((Numbers *)self)->packed.cut_bits);
}

static PyMethodDef numbers_methods[] = {
    {"find", numbers_find, METH_O,
     "Return the first place of a number among sorted ones, or -1; its low bits are ignored."},
    {"find_hashes", numbers_find_hashes, METH_O,
     "Return the first place of each hash in a list by its leading bytes, or -1, like find."},
    {"list_at", numbers_list_at, METH_O, "Return the numbers at a list of places."},
    {"list_between", numbers_list_between, METH_VARARGS,
     "Return the places within a range (end excluded) whose numbers are within a range (end "
     "excluded): start and end of places, then of numbers."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef numbers_members[] = {
    {"data", T_OBJECT, offsetof(Numbers, data), READONLY, "The bytes."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef numbers_properties[] = {
    {"cut_bits", numbers_cut_bits, NULL, "Low bits that were cut off.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot numbers_slots[] = {
    {Py_tp_doc, (void *)"Packed numbers of a segment."},
    {Py_tp_new, (void *)numbers_new},
    {Py_tp_dealloc, (void *)numbers_dealloc},
    {Py_tp_methods, numbers_methods},
    {Py_tp_members, numbers_members},
    {Py_tp_getset, numbers_properties},
    {Py_sq_length, (void *)numbers_length},
    {Py_sq_item, (void *)numbers_item},
    {Py_mp_length, (void *)numbers_length},
    {Py_mp_subscript, (void *)numbers_subscript},
    {0, NULL},
};

PyType_Spec numbers_spec = {
    .name = "tonlake.lake.index._rows.Numbers",
    .basicsize = sizeof(Numbers),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = numbers_slots,
};
