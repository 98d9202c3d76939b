/* Layouts of rows, compiled, and columns of rows by name. */
#ifndef TONLAKE_API_LAYOUT_H
#define TONLAKE_API_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef enum {
    NUMBER, TEXT_NUMBER, BASE64, FLAG, TEXT, ACCOUNT, SHARD, OPCODE, JSON, CALL, OBJECT, LIST,
    BASE64_UNLESS, CONSTANT, NAMED_ACCOUNT, KINDS
} Kind;

typedef struct Layout Layout;

/* A column: its name, and where the rows of the type that was met last have it. */
typedef struct {
    PyObject *name;
    PyTypeObject *type;
    Py_ssize_t at;
} Column;

typedef struct {
    Kind kind;
    Py_ssize_t source; /* which of the sources is read; -1: the row at hand */
    Column *columns;   /* for OBJECT those of which one is not None, else one or none */
    Py_ssize_t column_count;
    int any_of;        /* whether columns were given as a tuple */
    Column beside;     /* the column that accounts and BASE64_UNLESS read besides */
    PyObject *prefix, *missing, *other;
    const char *prefix_text, *missing_text;
    Py_ssize_t prefix_size, missing_size;
    Layout *inner;
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

/* Return a new reference; a column that is not there is None where it may be left out. */
PyObject *read_column(PyObject *row, Column *column, int may_lack);

#endif
