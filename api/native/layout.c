/* Layouts: tuples (kind, source, column, prefix, missing, other) taken apart once. */
#include "layout.h"

#include <string.h>

#include "buffer.h"

static const char CAPSULE[] = "api._json.layout";

void drop_column(Column *column)
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
    PyMem_Free(field->lead.data);
    PyMem_Free(field->missing.data);
    Py_XDECREF(field->other);
    Py_XDECREF(field->known);
}

static void free_layout(PyObject *capsule)
{
    Layout *layout = PyCapsule_GetPointer(capsule, CAPSULE);
    for (Py_ssize_t at = 0; layout && at < layout->count; at++)
        free_field(&layout->fields[at]);
    PyMem_Free(layout);
}

/* Take what a field begins with: a comma, the prefix, and one text more. */
static int take_lead(Lead *lead, PyObject *prefix, const char *more, size_t more_size)
{
    char *data = NULL;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(prefix, &data, &size) < 0)
        return -1;
    lead->size = 1 + (size_t)size + more_size;
    lead->data = PyMem_Calloc(lead->size + STEP, 1);
    if (!lead->data) {
        PyErr_NoMemory();
        return -1;
    }
    lead->data[0] = ',';
    memcpy(lead->data + 1, data, (size_t)size);
    memcpy(lead->data + 1 + size, more, more_size);
    return 0;
}

/* Tell whether a value of this kind is a short text without anything to escape. */
static int is_quoted(Kind kind)
{
    return kind == TEXT_NUMBER || kind == BASE64 || kind == BASE64_UNLESS || kind == ACCOUNT ||
           kind == NAMED_ACCOUNT || kind == SHARD || kind == OPCODE;
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
    int needed = field->kind == BODY ? BODY_COLUMNS : 1;
    int is_free = field->kind == CONSTANT || field->kind == CALL || field->kind == OBJECT ||
                  field->kind == LIST;
    if (!is_free && count != needed) {
        PyErr_Format(PyExc_ValueError, "a field needs %d columns", needed);
        return -1;
    }
    return 0;
}

/* Take what a kind of field has besides its column. */
static int take_other(Field *field, PyObject *other)
{
    PyObject *beside = NULL;
    switch (field->kind) {
    case ACCOUNT:
    case NAMED_ACCOUNT:
    case BASE64_UNLESS:
        field->beside.name = Py_NewRef(other);
        break;
    case CURRENCIES:
    case BODY:
        if (!PyTuple_Check(other) || !PyArg_ParseTuple(other, "OO:other", &beside, &other))
            return -1;
        if (field->kind == CURRENCIES)
            field->beside.name = Py_NewRef(beside);
        else
            field->known = Py_NewRef(beside);
        break;
    case OBJECT:
    case LIST:
        field->inner = PyCapsule_GetPointer(other, CAPSULE);
        if (!field->inner)
            return -1;
        break;
    default:
        break;
    }
    field->other = Py_NewRef(other);
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
    if (take_columns(field, column) < 0 || take_other(field, other) < 0)
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

/* Return an attribute of a type that is a whole number; -1 where it has none. */
static Py_ssize_t read_size(PyTypeObject *type, const char *name)
{
    PyObject *value = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t size = value ? PyLong_AsSsize_t(value) : -1;
    Py_XDECREF(value);
    if (PyErr_Occurred())
        PyErr_Clear();
    return size;
}

/* Note where the rows of a type have a column, if the type says so: pointers side by side. */
static void learn_place(Column *column, PyTypeObject *type)
{
    PyObject *names = PyObject_GetAttrString((PyObject *)type, "__columns__");
    Py_ssize_t at = names ? PySequence_Index(names, column->name) : -1;
    Py_XDECREF(names);
    if (PyErr_Occurred())
        PyErr_Clear();
    Py_ssize_t first = read_size(type, "__first_column__"), size = read_size(type, "__basicsize__");
    Py_ssize_t width = (Py_ssize_t)sizeof(PyObject *);
    int is_inside = at >= 0 && first > 0 && size > first && at < (size - first) / width;
    PyTypeObject *before = column->type;
    column->type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    column->offset = is_inside ? first + at * width : 0;
    Py_XDECREF((PyObject *)before);
}

PyObject *look_up_column(PyObject *row, Column *column, int may_lack)
{
    if (!PyDict_CheckExact(row) && Py_TYPE(row) != column->type) {
        learn_place(column, Py_TYPE(row));
        if (column->offset)
            return read_column(row, column, may_lack);
    }
    PyObject *value = PyObject_GetItem(row, column->name);
    if (value || !may_lack)
        return value;
    if (!PyErr_ExceptionMatches(PyExc_KeyError) && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return NULL;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}
