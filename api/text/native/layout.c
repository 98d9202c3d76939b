/* Compiles layouts from tuples (kind, source, columns, prefix, missing, other). */
#include "layout.h"

#include "buffer.h"
#include "module.h"

static const char CAPSULE[] = "tonlake.api.text._json.layout";

#define KIND_NAME(kind, name) name,
static const char *const KIND_NAMES[] = {EACH_KIND(KIND_NAME)};

/* Take a column from a pair (name, place in rows that are lists). */
static int take_column(Column *column, PyObject *pair)
{
    if (PyTuple_Check(pair) && PyArg_ParseTuple(pair, "Un:column", &column->name, &column->listed))
        return 0;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a column is a pair (name, place)");
    return -1;
}

static void free_field(Field *field)
{
    for (Py_ssize_t at = 0; at < field->column_count; at++)
        Py_XDECREF(field->columns[at].type);
    PyMem_Free(field->columns);
    Py_XDECREF(field->beside.type);
    Py_XDECREF(field->body_hash.type);
    PyMem_Free(field->lead.data);
    PyMem_Free(field->missing.data);
    Py_XDECREF(field->none);
    Py_XDECREF(field->spec);
}

static void free_layout(PyObject *capsule)
{
    Layout *layout = PyCapsule_GetPointer(capsule, CAPSULE);
    for (Py_ssize_t at = 0; layout && at < layout->count; at++)
        free_field(&layout->fields[at]);
    PyMem_Free(layout);
}

/* Store the beginning of a field: a comma, the prefix, and `more`. */
static int take_lead(Lead *lead, PyObject *prefix, const char *more, size_t more_size)
{
    char *data = NULL;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(prefix, &data, &size) < 0)
        return -1;
    lead->size = 1 + (size_t)size + more_size;
    lead->data = PyMem_Malloc(lead->size);
    if (!lead->data) {
        PyErr_NoMemory();
        return -1;
    }
    lead->data[0] = ',';
    memcpy(lead->data + 1, data, (size_t)size);
    memcpy(lead->data + 1 + size, more, more_size);
    return 0;
}

/* Whether values of this kind are short strings that need no escapes. */
static int is_quoted(Kind kind)
{
    return kind == TEXT_NUMBER || kind == BASE64 || kind == BASE64_UNLESS || kind == ACCOUNT ||
           kind == NAMED_ACCOUNT || kind == SHARD || kind == OPCODE || kind == BAG;
}

static int take_texts(Field *field, PyObject *prefix, PyObject *missing)
{
    char *text = NULL;
    Py_ssize_t size;
    if (take_lead(&field->lead, prefix, "\"", is_quoted(field->kind) ? 1 : 0) < 0)
        return -1;
    if (missing == Py_None)
        return 0;
    if (PyBytes_AsStringAndSize(missing, &text, &size) < 0)
        return -1;
    return take_lead(&field->missing, prefix, text, (size_t)size);
}

/* Store the column names of a field. */
static int take_columns(Field *field, PyObject *names)
{
    Py_ssize_t count = PyTuple_Size(names);
    field->columns = PyMem_Calloc((size_t)count + 1, sizeof *field->columns);
    if (!field->columns) {
        PyErr_NoMemory();
        return -1;
    }
    for (; field->column_count < count; field->column_count++)
        if (take_column(&field->columns[field->column_count],
                        PyTuple_GetItem(names, field->column_count)) < 0)
            return -1;
    if (field->kind < BODY && count != 1) {
        PyErr_Format(PyExc_ValueError, "a field of kind %s needs one column",
                     KIND_NAMES[field->kind]);
        return -1;
    }
    return 0;
}

/* Store what a kind of field needs besides its columns. */
static int take_other(Field *field, PyObject *other)
{
    PyObject *beside = other, *body_hash = NULL;
    switch (field->kind) {
    case CURRENCIES:
        field->none = PyUnicode_InternFromString("{}");
        if (!field->none || !PyTuple_Check(other) ||
            !PyArg_ParseTuple(other, "OU:other", &beside, &field->equals))
            return -1;
        break;
    case OPCODE_NAME:
        if (!PyTuple_Check(other) ||
            !PyArg_ParseTuple(other, "OUOO(O!O!)O:other", &beside, &field->equals, &field->known,
                              &field->decode, &PyDict_Type, &field->kept[0], &PyDict_Type,
                              &field->kept[1], &body_hash) ||
            take_column(&field->body_hash, body_hash) < 0)
            return -1;
        break;
    case ACCOUNT:
    case NAMED_ACCOUNT:
    case BASE64_UNLESS:
        break;
    case BODY:
    case OBJECT:
    case LIST:
        field->inner = PyCapsule_GetPointer(other, CAPSULE);
        return field->inner ? 0 : -1;
    default:
        return 0;
    }
    return take_column(&field->beside, beside);
}

/* Return the kind with this name; KINDS if there is none. */
static Kind find_kind(PyObject *name)
{
    int kind = 0;
    while (kind < KINDS && PyUnicode_CompareWithASCIIString(name, KIND_NAMES[kind]) != 0)
        kind++;
    return (Kind)kind;
}

static int compile_field(Field *field, PyObject *spec)
{
    PyObject *kind, *columns, *prefix, *missing, *other;
    field->spec = Py_NewRef(spec);
    if (!PyArg_ParseTuple(spec, "UnO!SOO:field", &kind, &field->source, &PyTuple_Type, &columns,
                          &prefix, &missing, &other))
        return -1;
    field->kind = find_kind(kind);
    if (field->kind == KINDS) {
        PyErr_Format(PyExc_ValueError, "a field has the unknown kind %U", kind);
        return -1;
    }
    if (take_columns(field, columns) < 0 || take_other(field, other) < 0)
        return -1;
    return take_texts(field, prefix, missing);
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

/* Find the place of a column in a type of named tuples. */
static int learn_place(Column *column, PyObject *type)
{
    PyObject *names = PyObject_GetAttrString(type, "_fields");
    int has = names ? PySequence_Contains(names, column->name) : -1;
    Py_ssize_t place = has > 0 ? PySequence_Index(names, column->name) : ABSENT;
    Py_XDECREF(names);
    if (has < 0 || PyErr_Occurred())
        return -1;
    Py_XDECREF(column->type);
    column->type = Py_NewRef(type);
    column->place = place;
    return 0;
}

PyObject *find_column(PyObject *row, Column *column, int may_lack)
{
    PyObject *found = NULL;
    if (PyTuple_Check(row)) {
        PyObject *type = (PyObject *)Py_TYPE(row);
        if (type != column->type && learn_place(column, type) < 0)
            return NULL;
        if (column->place != ABSENT)
            return PyTuple_GetItem(row, column->place);
    } else if (PyDict_Check(row)) {
        found = PyDict_GetItemWithError(row, column->name);
    } else if (!PyList_CheckExact(row)) {
        PyErr_SetString(PyExc_TypeError, "a row is a dict, a named tuple or a list");
        return NULL;
    }
    if (found || PyErr_Occurred())
        return found;
    if (may_lack)
        return Py_None;
    PyErr_SetObject(PyExc_KeyError, column->name);
    return NULL;
}
