/* Bodies of messages that follow no layout. */
#ifndef TONLAKE_API_BODY_H
#define TONLAKE_API_BODY_H

#include "buffer.h"

/* Write `decoded_opcode` and `message_content` of a body whose opcode is not among `known`.
 *
 * Returns 1; 0 where it may be among them, or there is no body: nothing is written then.
 */
int add_unknown_body(Buffer *out, PyObject *hash, PyObject *body, PyObject *known);

#endif
