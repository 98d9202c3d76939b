/* Writes rows of tables as JSON. */
#ifndef TONLAKE_API_WRITER_H
#define TONLAKE_API_WRITER_H

#include "buffer.h"
#include "layout.h"

enum { VALUE_BYTES = 32 };

typedef struct {
    Buffer out;
    PyObject *const *sources; /* the rows that fields may read, borrowed */
    Py_ssize_t source_count;
    PyObject *named;   /* set to which accounts for the address book are added; may be NULL */
    PyObject *body;    /* JSON of the body that add_opcode_name decoded last, or NULL */
    const uint8_t *values; /* the 32-byte values that numbers in place of bytes stand for */
    size_t value_count;
} Writer;

/* Find the bytes of a value: its own, or those that its number stands for. Return -1 on error. */
int find_bytes(const Writer *writer, PyObject *value, const uint8_t **data, size_t *size);

/* Add the first of some rows; the others are its sources. Return -1 on error. */
int add_sources(Writer *writer, Layout *layout, PyObject *const *sources, Py_ssize_t count);

void free_writer(Writer *writer);

/* Write a bag of cells as base64, adding its checksum if it has none. */
int add_bag(Buffer *out, PyObject *bag);

/* Return whether the column `beside` of a field equals its text; -1 on error. */
int equals_text(Field *field, PyObject *row);

/* Add the name of a body's opcode, and keep the JSON of the decoded body in `writer->body`. */
int add_opcode_name(Writer *writer, Field *field, PyObject *row);

#endif
