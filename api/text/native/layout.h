/* Compiled layouts of rows, and access to columns by name. */
#ifndef TONLAKE_API_LAYOUT_H
#define TONLAKE_API_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* Kinds of fields; api/v3/layout/field.py explains them. */
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

/* A column: its name, its place in the type of named tuples seen last, and that in rows that are lists;
 * ABSENT: it has none. */
typedef struct {
    PyObject *name, *type;
    Py_ssize_t place, listed;
} Column;

enum { ABSENT = -1 };

/* The beginning of a field, comma included. */
typedef struct {
    char *data;
    size_t size;
} Lead;

typedef struct {
    Kind kind;
    Py_ssize_t source; /* index of the source to read; -1: the current row */
    Column *columns;   /* OBJECT: missing if all of these are None; else one column or none */
    Py_ssize_t column_count;
    Column beside;     /* second column of some kinds */
    PyObject *equals;  /* text that CURRENCIES and OPCODE_NAME compare `beside` with */
    PyObject *none;    /* CURRENCIES: the text of no currencies */
    Lead lead;         /* text before the value, opening quote included */
    Lead missing;      /* the whole field if the value is missing; no data: the field is left out */
    PyObject *known;   /* OPCODE_NAME: set of opcodes that have a name */
    PyObject *decode;  /* OPCODE_NAME: function of a body's hash, the body, and whether its kind is
                        * `equals`; returns JSON of the name and of the body, and the body */
    PyObject *kept[2]; /* OPCODE_NAME: caches of its results by body hash, the second if it is */
    Column body_hash;  /* OPCODE_NAME: the key of `kept` */
    Layout *inner;     /* for BODY, OBJECT and LIST */
    PyObject *spec;    /* the tuple that owns the objects above, but for types and `none` */
} Field;

struct Layout {
    Py_ssize_t count;
    Field fields[];
};

/* Return the layout in a capsule; NULL with an exception if there is none. */
Layout *open_layout(PyObject *capsule);

/* Read a column of a row of any kind. */
PyObject *find_column(PyObject *row, Column *column, int may_lack);

/* Read a column of a row: a dict, a named tuple, or a list. Return a reference borrowed from the row; None
 * if the row lacks the column and `may_lack`; NULL on error. */
static inline PyObject *read_column(PyObject *row, Column *column, int may_lack)
{
    if (PyList_CheckExact(row) && column->listed != ABSENT)
        return PyList_GetItem(row, column->listed);
    return find_column(row, column, may_lack);
}

#endif
