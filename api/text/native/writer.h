/* Rows of tables to JSON. */
#ifndef TONLAKE_API_WRITER_H
#define TONLAKE_API_WRITER_H

#include "buffer.h"
#include "layout.h"

typedef struct {
    Buffer out;
    PyObject *sources; /* a tuple */
    PyObject *named;   /* a set of (workchain, account); NULL where they are not asked for */
    PyObject *body;    /* JSON of the body whose opcode was named last; NULL if it has none yet */
    int depth;
} Writer;

/* Add the first of a tuple of rows, the others of which are its sources; -1: an error. */
int add_sources(Writer *writer, Layout *layout, PyObject *sources);

void free_writer(Writer *writer);

/* Write the first of a tuple of rows; the others are its sources. */
PyObject *write_row(PyObject *self, PyObject *args);

/* Write a list of records one by one, each taken apart into such a tuple, and add the accounts for
 * the address book to a set. */
PyObject *write_records(PyObject *self, PyObject *args);

#endif
