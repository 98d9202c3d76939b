/* Text of JSON as it grows. Every function returns 0, or -1 with a Python error set. */
#ifndef TONLAKE_API_BUFFER_H
#define TONLAKE_API_BUFFER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

typedef struct {
    char *data;
    size_t size, room;
} Buffer;

/* Make room for `more` bytes and return where they go; `size` counts what is written there. */
char *buffer_room(Buffer *buffer, size_t more);
int buffer_add_number(Buffer *buffer, long long number);
int buffer_add_hex(Buffer *buffer, const uint8_t *data, size_t size);
int buffer_add_base64(Buffer *buffer, const uint8_t *data, size_t size);
/* A JSON string with its quotes; `data` is UTF-8. */
int buffer_add_text(Buffer *buffer, const char *data, size_t size);
/* Add bytes; most of them fit, and need no call. */
static inline int buffer_add(Buffer *buffer, const char *data, size_t size)
{
    char *to = size <= buffer->room - buffer->size && buffer->data ? buffer->data + buffer->size
                                                                  : buffer_room(buffer, size);
    if (!to)
        return -1;
    memcpy(to, data, size);
    buffer->size += size;
    return 0;
}

void buffer_free(Buffer *buffer);

#endif
