/* Layouts of rows, compiled, and columns of rows by name. */
#ifndef TONLAKE_API_LAYOUT_H
#define TONLAKE_API_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef enum {
    NUMBER, TEXT_NUMBER, BASE64, FLAG, TEXT, ACCOUNT, SHARD, OPCODE, JSON, CALL, OBJECT, LIST,
    BASE64_UNLESS, CONSTANT, NAMED_ACCOUNT, CURRENCIES, BODY, KINDS
} Kind;

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
    Column *columns;   /* for OBJECT those of which one is not None; BODY three; else one or none */
    Py_ssize_t column_count;
    int any_of;        /* whether columns were given as a tuple */
    Column beside;     /* the column that accounts, BASE64_UNLESS and CURRENCIES read besides */
    Lead lead;         /* what precedes the value, its opening quote included */
    Lead missing;      /* the whole field where there is no value; no data where it is left out */
    PyObject *other;
    PyObject *known;   /* for BODY: a set of opcodes */
    Layout *inner;
} Field;

struct Layout {
    Py_ssize_t count;
    Field fields[];
};

enum { DEEPEST = 16, BODY_COLUMNS = 3 };

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
