/* Message bodies: bags of cells, names of opcodes, and decoded bodies. */
#ifndef TONLAKE_API_DECODED_H
#define TONLAKE_API_DECODED_H

#include "writer.h"

/* Write a bag of cells as base64, adding its checksum if it has none. */
int add_bag(Buffer *out, PyObject *bag);

/* Return whether the column `beside` of a field equals its text; -1 on error. */
int equals_text(Field *field, PyObject *row);

/* Add the name of a body's opcode, and keep the JSON of the decoded body in `writer->body`. */
int add_opcode_name(Writer *writer, Field *field, PyObject *row);

#endif
