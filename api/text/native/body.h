/* Message bodies: opcodes without a scheme, and bags of cells as base64. */
#ifndef TONLAKE_API_BODY_H
#define TONLAKE_API_BODY_H

#include "../../../lake/index/segment/native/held.h"
#include "buffer.h"

/* Return 1 if the opcode of a body is not in the set `known`; 0 if it may be, or if there is no body;
 * -1 on error. */
int is_unknown_body(const Value *body, PyObject *known);

/* Write a bag of cells as base64, adding its checksum if it has none. */
int add_bag(Buffer *out, const Value *bag);

#endif
