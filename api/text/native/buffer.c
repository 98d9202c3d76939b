/* A growing buffer of JSON text: numbers, hex, base64 and strings. */
#include "buffer.h"

#include <stdio.h>

enum { FIRST_ROOM = 4096, NUMBER_ROOM = 24, ESCAPED = 6 };

/* The numbers 00 to 99. */
static const char PAIRS[] = "0001020304050607080910111213141516171819"
                            "2021222324252627282930313233343536373839"
                            "4041424344454647484950515253545556575859"
                            "6061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

/* Letters of the control characters with a short escape. */
static const char SHORT[0x20] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

char *buffer_grow(Buffer *buffer, size_t more)
{
    if (more > (size_t)PY_SSIZE_T_MAX - buffer->size) {
        PyErr_NoMemory();
        return NULL;
    }
    size_t room = buffer->room ? buffer->room : FIRST_ROOM;
    while (room < buffer->size + more)
        room *= 2;
    char *data = PyMem_Realloc(buffer->data, room);
    if (!data) {
        PyErr_NoMemory();
        return NULL;
    }
    buffer->data = data;
    buffer->room = room;
    return data + buffer->size;
}

void buffer_free(Buffer *buffer)
{
    PyMem_Free(buffer->data);
    *buffer = (Buffer){0};
}

int buffer_add_number(Buffer *buffer, long long number)
{
    char *to = buffer_room(buffer, NUMBER_ROOM);
    if (!to)
        return -1;
    char digits[NUMBER_ROOM], *at = digits + sizeof digits;
    unsigned long long rest = number < 0 ? 0ull - (unsigned long long)number : (unsigned long long)number;
    while (rest >= 100) {
        at -= 2;
        memcpy(at, PAIRS + rest % 100 * 2, 2);
        rest /= 100;
    }
    if (rest >= 10) {
        at -= 2;
        memcpy(at, PAIRS + rest * 2, 2);
    } else {
        *--at = (char)('0' + rest);
    }
    if (number < 0)
        *--at = '-';
    size_t size = (size_t)(digits + sizeof digits - at);
    memcpy(to, at, size);
    buffer->size += size;
    return 0;
}

int buffer_add_hex(Buffer *buffer, const uint8_t *data, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    char *to = buffer_room(buffer, size * 2);
    if (!to)
        return -1;
    for (size_t at = 0; at < size; at++) {
        *to++ = digits[data[at] >> 4];
        *to++ = digits[data[at] & 15];
    }
    buffer->size += size * 2;
    return 0;
}

char *write_base64(char *to, const uint8_t *data, size_t size, const char *digits)
{
    size_t at = 0;
    for (; at + 3 <= size; at += 3) {
        uint32_t word = (uint32_t)data[at] << 16 | (uint32_t)data[at + 1] << 8 | data[at + 2];
        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = digits[word >> 6 & 63];
        *to++ = digits[word & 63];
    }
    if (at < size) {
        uint32_t word = (uint32_t)data[at] << 16 | (at + 1 < size ? (uint32_t)data[at + 1] << 8 : 0);
        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = at + 1 < size ? digits[word >> 6 & 63] : '=';
        *to++ = '=';
    }
    return to;
}

int buffer_add_base64(Buffer *buffer, const uint8_t *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *to = buffer_room(buffer, (size + 2) / 3 * 4);
    if (!to)
        return -1;
    buffer->size += (size_t)(write_base64(to, data, size, digits) - to);
    return 0;
}

int buffer_add_text(Buffer *buffer, const char *data, size_t size)
{
    char *start = size < SIZE_MAX / ESCAPED - 2 ? buffer_room(buffer, size * ESCAPED + 2) : NULL;
    if (!start)
        return PyErr_Occurred() ? -1 : (PyErr_NoMemory(), -1);
    char *to = start;
    *to++ = '"';
    for (size_t at = 0; at < size; at++) {
        unsigned char byte = (unsigned char)data[at];
        if (byte >= 0x20 && byte != '"' && byte != '\\') {
            *to++ = (char)byte;
            continue;
        }
        char letter = byte < 0x20 ? SHORT[byte] : (char)byte;
        if (letter) {
            *to++ = '\\';
            *to++ = letter;
        } else {
            to += snprintf(to, ESCAPED + 1, "\\u%04x", byte);
        }
    }
    *to++ = '"';
    buffer->size += (size_t)(to - start);
    return 0;
}

int buffer_add_json(Buffer *buffer, PyObject *json)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(json, &data, &size) < 0)
        return -1;
    return buffer_add(buffer, data, (size_t)size);
}
