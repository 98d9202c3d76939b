/* Bodies of messages that follow no scheme. */
#ifndef TONLAKE_API_BODY_H
#define TONLAKE_API_BODY_H

#include "buffer.h"

/* Return 1 if a body has an opcode that is not among `known`; 0 where it may be among them, or
 * there is no body.
 */
int is_unknown_body(PyObject *body, PyObject *known);

/* Write a bag of cells with its checksum as base64. */
int add_bag(Buffer *out, PyObject *bag);

#endif
