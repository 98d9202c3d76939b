/* The Python type of an open segment, which reads lists of items. */
#include "rows.h"

typedef PyObject *(*Reading)(Source *, Context *, PyObject *);

/* Read each item of a sequence with a function. */
static PyObject *read_all(PyObject *self, PyObject *items, Reading read)
{
    Py_ssize_t count = PySequence_Size(items);
    PyObject *found = count < 0 ? NULL : PyList_New(count);
    Context context = {.first = 0, .last = 0};
    for (Py_ssize_t at = 0; found && at < count; at++) {
        PyObject *item = PySequence_GetItem(items, at);
        PyObject *made = item ? read((Source *)self, &context, item) : NULL;
        Py_XDECREF(item);
        if (!made || PyList_SetItem(found, at, made) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *record_of(Source *source, Context *context, PyObject *row)
{
    long long number = PyLong_AsLongLong(row);
    return PyErr_Occurred() ? NULL : read_record(source, context, number);
}

static PyObject *source_records(PyObject *self, PyObject *rows)
{
    return read_all(self, rows, record_of);
}

static PyObject *state_of(Source *source, Context *context, PyObject *address)
{
    int64_t number;
    if (!find_account(source, address, &number))
        return NULL;
    return number < 0 ? Py_NewRef(Py_None) : read_newest(source, context, number);
}

static PyObject *source_states(PyObject *self, PyObject *addresses)
{
    return read_all(self, addresses, state_of);
}

static PyObject *trace_at(Source *source, Context *context, PyObject *number)
{
    long long at = PyLong_AsLongLong(number);
    return PyErr_Occurred() ? NULL : read_trace(source, context, at);
}

static PyObject *source_traces(PyObject *self, PyObject *numbers)
{
    return read_all(self, numbers, trace_at);
}

static PyObject *linked_at(Source *source, Context *context, PyObject *number)
{
    (void)context;
    Value hash;
    long long at = PyLong_AsLongLong(number);
    return !PyErr_Occurred() && find_linked(source, at, &hash) ? make_object(&hash) : NULL;
}

static PyObject *source_linked(PyObject *self, PyObject *numbers)
{
    return read_all(self, numbers, linked_at);
}

static PyObject *message_at(Source *source, Context *context, PyObject *at)
{
    long long row;
    PyObject *key;
    return PyArg_ParseTuple(at, "LO", &row, &key) ? read_one(source, context, row, key) : NULL;
}

static PyObject *source_messages(PyObject *self, PyObject *items)
{
    return read_all(self, items, message_at);
}

static void free_shape(Shape *shape)
{
    PyMem_Free(shape->values);
    PyMem_Free(shape->open);
}

static void source_dealloc(PyObject *self)
{
    Source *source = (Source *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int at = 0; at < source->open; at++)
        PyBuffer_Release(&source->arrays[at]);
    for (Py_ssize_t at = 0; source->shapes && at < source->shape_count; at++)
        free_shape(&source->shapes[at]);
    PyMem_Free(source->shapes);
    Py_XDECREF(source->kept);
    Py_XDECREF(source->types);
    Py_XDECREF(source->hashes);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Convert a constant into a value. */
static Value take_constant(PyObject *object)
{
    int overflow = 1;
    long long number = 0;
    if (PyLong_CheckExact(object))
        number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow)
        return number_value(number);
    if (PyBytes_CheckExact(object) && PyBytes_Size(object) <= UINT32_MAX)
        return (Value){.data = (const uint8_t *)PyBytes_AsString(object),
                       .size = (uint32_t)PyBytes_Size(object),
                       .form = IS_BYTES};
    return lend_object(object);
}

/* Parse the columns of a shape. */
static bool take_columns(Shape *shape, PyObject *constants)
{
    size_t room = (size_t)shape->count + 1;
    shape->values = PyMem_Calloc(room, sizeof *shape->values);
    shape->open = PyMem_Calloc(room, sizeof *shape->open);
    shape->opcode_at = -1;
    if (!shape->values || !shape->open) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t at = 0; at < shape->count; at++) {
        shape->values[at] = take_constant(PyTuple_GetItem(constants, at));
        if (shape->codes[at] == 'o')
            shape->opcode_at = at;
        if (!is_shaped(shape->codes[at]))
            shape->open[shape->open_count++] = at;
    }
    return true;
}

static bool is_damaged(const Source *source, const Shape *shape)
{
    return (shape->kind == TRANSACTION && source->in_hash_at >= shape->count) ||
           (shape->kind == MESSAGE &&
            (source->message_hash_at >= shape->count || source->body_at >= shape->count)) ||
           (shape->kind != MESSAGE && shape->opcode_at >= 0);
}

/* Parse shapes: a list of (kind, codes, constants). */
static bool take_shapes(Source *source, PyObject *shapes)
{
    source->shape_count = PyTuple_Size(shapes);
    source->kept = Py_NewRef(shapes);
    source->shapes = PyMem_Calloc((size_t)source->shape_count + 1, sizeof(Shape));
    if (source->shape_count < 0 || !source->shapes)
        return false;
    for (Py_ssize_t at = 0; at < source->shape_count; at++) {
        Shape *shape = &source->shapes[at];
        int kind;
        PyObject *constants;
        if (!PyArg_ParseTuple(PyTuple_GetItem(shapes, at), "iy#O!", &kind, &shape->codes,
                              &shape->count, &PyTuple_Type, &constants))
            return false;
        shape->kind = (Kind)kind;
        bool is_known = kind >= 0 && kind < KINDS && shape->count == PyTuple_Size(constants) &&
                        shape->count <= source->widths[kind];
        if (is_known && !take_columns(shape, constants))
            return false;
        if (!is_known || is_damaged(source, shape)) {
            PyErr_SetString(PyExc_ValueError, "a shape of the segment is damaged");
            return false;
        }
    }
    return true;
}

static bool is_packed(Array array)
{
    return array != RECORDS && array != HASH && array != HASH_AFTER && array != OTHER &&
           array != ACCOUNT_ID && array != STATES && array != ENDED;
}

static PyObject *source_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *arrays, *shapes, *hashes, *types;
    (void)names;
    Source *source = PyObject_New(Source, type);
    if (!source)
        return NULL;
    memset((char *)source + sizeof(PyObject), 0, sizeof *source - sizeof(PyObject));
    if (!PyArg_ParseTuple(args, "O!O!O!O!(nnnnn)(nnn):Source", &PyTuple_Type, &arrays, &PyTuple_Type,
                          &shapes, &PyTuple_Type, &hashes, &PyTuple_Type, &types,
                          &source->widths[0], &source->widths[1], &source->widths[2],
                          &source->widths[3], &source->widths[4], &source->in_hash_at,
                          &source->message_hash_at, &source->body_at))
        goto failed;
    if (PyTuple_Size(arrays) != ARRAYS || PyTuple_Size(types) != KINDS + 3) {
        PyErr_SetString(PyExc_ValueError, "Source needs all arrays of a segment");
        goto failed;
    }
    source->types = Py_NewRef(types);
    source->hashes = Py_NewRef(hashes);
    for (; source->open < ARRAYS; source->open++)
        if (PyObject_GetBuffer(PyTuple_GetItem(arrays, source->open), &source->arrays[source->open],
                               PyBUF_SIMPLE) < 0)
            goto failed;
    for (int at = 0; at < ARRAYS; at++)
        if (is_packed(at) && !open_packed(&source->arrays[at], &source->numbers[at]))
            goto failed;
    source->rows = source->numbers[LT].count;
    if (!take_shapes(source, shapes))
        goto failed;
    return (PyObject *)source;
failed:
    Py_DECREF(source);
    return NULL;
}

static PyMethodDef source_methods[] = {
    {"read_records", source_records, METH_O, "Return the records of rows, in the same order."},
    {"read_messages", source_messages, METH_O,
     "Return messages by row and place, or by row and hash; None if the row has none."},
    {"choose_messages", choose_messages, METH_VARARGS,
     "Return the messages that pass filters: a list of rows, meaning all of their messages, or of "
     "pairs of row and place; filters, each the place of a column and its bounds, None for NULL; "
     "places of the columns to return; and the value of the field segment."},
    {"list_members", list_members, METH_VARARGS,
     "Return the rows in a list that belong to a trace, in order: its id, the least and the "
     "greatest logical time, and the value of the field segment."},
    {"read_columns", read_columns, METH_VARARGS,
     "Return columns of messages, given as for read_messages: their number, and for each column "
     "validity, offsets and data as Arrow buffers, None if not needed. A column is its place, or a "
     "negative one for the transaction's, and a type: a width in bytes, 0 for bits, 32 for hashes, "
     "-1 for bytes of varying length."},
    {"read_states", source_states, METH_O,
     "Return the newest states of a list of accounts, each workchain and 32 bytes."},
    {"read_traces", source_traces, METH_O, "Return complete traces by their numbers."},
    {"read_linked", source_linked, METH_O,
     "Return the hashes that numbers in root and parent refer to, None for 0."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot source_slots[] = {
    {Py_tp_doc, (void *)"The arrays of an open segment."},
    {Py_tp_new, (void *)source_new},
    {Py_tp_dealloc, (void *)source_dealloc},
    {Py_tp_methods, source_methods},
    {0, NULL},
};

PyType_Spec source_spec = {
    .name = "tonlake.lake.index._rows.Source",
    .basicsize = sizeof(Source),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = source_slots,
};
