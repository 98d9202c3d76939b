/* Layouts of rows, compiled, and columns of rows by name. */
#ifndef TONLAKE_API_LAYOUT_H
#define TONLAKE_API_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Kinds of fields, by the names that api/v3/layout/field.py explains. */
#define EACH_KIND(KIND)                                                                            \
    KIND(NUMBER, "number")                                                                         \
    KIND(TEXT_NUMBER, "text_number")                                                               \
    KIND(BASE64, "base64")                                                                         \
    KIND(FLAG, "flag")                                                                             \
    KIND(TEXT, "text")                                                                             \
    KIND(ACCOUNT, "account")                                                                       \
    KIND(NAMED_ACCOUNT, "named_account")                                                           \
    KIND(SHARD, "shard")                                                                           \
    KIND(OPCODE, "opcode")                                                                         \
    KIND(JSON, "json")                                                                             \
    KIND(CURRENCIES, "currencies")                                                                 \
    KIND(BAG, "bag")                                                                               \
    KIND(BASE64_UNLESS, "base64_unless")                                                           \
    KIND(OPCODE_NAME, "opcode_name")                                                               \
    KIND(BODY, "body")                                                                             \
    KIND(OBJECT, "object")                                                                         \
    KIND(LIST, "list")                                                                             \
    KIND(CONSTANT, "constant")

#define KIND_VALUE(kind, name) kind,
typedef enum { EACH_KIND(KIND_VALUE) KINDS } Kind;

typedef struct Layout Layout;

/* A column: its name, and where the rows of the type that was met last have it, in bytes from the
 * row's begin; 0: they do not say so. */
typedef struct {
    PyObject *name;
    PyTypeObject *type;
    Py_ssize_t offset;
} Column;

/* What a field begins with, its comma included; STEP bytes more can be read. */
typedef struct {
    char *data;
    size_t size;
} Lead;

typedef struct {
    Kind kind;
    Py_ssize_t source; /* which of the sources is read; -1: the row at hand */
    Column *columns;   /* for objects those of which one is not None, if any; else one or none */
    Py_ssize_t column_count;
    Column beside;     /* the column that some kinds read besides */
    PyObject *equals;  /* the text that CURRENCIES and OPCODE_NAME compare it with */
    Lead lead;         /* what precedes the value, its opening quote included */
    Lead missing;      /* the complete field where there is no value; no data where it is left out */
    PyObject *known;   /* for OPCODE_NAME: the set of opcodes that have a name */
    PyObject *decode;  /* for OPCODE_NAME: returns the JSON of the name and of the body of a row */
    Layout *inner;     /* for BODY, OBJECT and LIST */
    PyObject *inner_owner;
} Field;

struct Layout {
    Py_ssize_t count;
    Field fields[];
};

enum { DEEPEST = 16 };

/* Return a capsule with a layout made of a tuple of fields. */
PyObject *compile_layout(PyObject *self, PyObject *fields);

/* Return the layout in a capsule; NULL with an error where it holds none. */
Layout *open_layout(PyObject *capsule);

/* Let go of what a column holds. */
void drop_column(Column *column);

/* Read a column of a row whose type does not say where it is, or is new. */
PyObject *look_up_column(PyObject *row, Column *column, int may_lack);

/* Return a new reference; a column that is not there is None where it may be left out. */
static inline PyObject *read_column(PyObject *row, Column *column, int may_lack)
{
    if (Py_TYPE(row) != column->type || !column->offset)
        return look_up_column(row, column, may_lack);
    PyObject *value = *(PyObject **)((char *)row + column->offset);
    return Py_NewRef(value ? value : Py_None);
}

#endif
