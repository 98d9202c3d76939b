/* A growing buffer of JSON text. Functions return 0 (or a pointer), or -1 (NULL) with an exception. */
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

/* Reallocate for `more` bytes and return where to write them. */
char *buffer_grow(Buffer *buffer, size_t more);

/* Reserve `more` bytes and return where to write them; the caller adds what it wrote to `size`. */
static inline char *buffer_room(Buffer *buffer, size_t more)
{
    if (buffer->data && more <= buffer->room - buffer->size)
        return buffer->data + buffer->size;
    return buffer_grow(buffer, more);
}

int buffer_add_number(Buffer *buffer, long long number);
int buffer_add_hex(Buffer *buffer, const uint8_t *data, size_t size);
/* Write base64 with these 64 digits, padded; return its end. */
char *write_base64(char *to, const uint8_t *data, size_t size, const char *digits);

int buffer_add_base64(Buffer *buffer, const uint8_t *data, size_t size);
/* Add a JSON string with quotes; `data` is UTF-8. */
int buffer_add_text(Buffer *buffer, const char *data, size_t size);

/* Add bytes of Python that are JSON already. */
int buffer_add_json(Buffer *buffer, PyObject *json);

static inline int buffer_add(Buffer *buffer, const char *data, size_t size)
{
    char *to = buffer_room(buffer, size);
    if (!to)
        return -1;
    memcpy(to, data, size);
    buffer->size += size;
    return 0;
}

static inline int buffer_add_char(Buffer *buffer, char character)
{
    char *to = buffer_room(buffer, 1);
    if (!to)
        return -1;
    *to = character;
    buffer->size++;
    return 0;
}

void buffer_free(Buffer *buffer);

#endif
