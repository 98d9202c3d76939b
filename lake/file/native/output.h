/* A growing byte buffer, and numbers and fields of Thrift's compact protocol in it:
   https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md */
#ifndef TONLAKE_PARQUET_OUTPUT_H
#define TONLAKE_PARQUET_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* After a failed allocation nothing is added any more. */
typedef struct {
    uint8_t *data;
    size_t size, room;
    bool failed;
} Output;

enum { FIRST_ROOM = 1 << 14, MAX_VARINT = 10 };

/* Types of Thrift fields and elements. */
enum { IS_TRUE = 1, IS_FALSE = 2, IS_I32 = 5, IS_I64 = 6, IS_BINARY = 8, IS_LIST = 9, IS_STRUCT = 12 };

/* Make room and return its start; the caller adds what it writes to `size`. NULL: no memory. */
static inline uint8_t *output_room(Output *output, size_t more)
{
    if (output->failed || more > SIZE_MAX / 4 - output->size) {
        output->failed = true;
        return NULL;
    }
    if (more > output->room - output->size) {
        size_t room = output->room ? output->room : FIRST_ROOM;
        while (room - output->size < more)
            room *= 2;
        uint8_t *data = realloc(output->data, room);
        if (!data) {
            output->failed = true;
            return NULL;
        }
        output->data = data;
        output->room = room;
    }
    return output->data + output->size;
}

static inline void put_bytes(Output *output, const void *data, size_t size)
{
    uint8_t *to = size ? output_room(output, size) : NULL;
    if (!to)
        return;
    memcpy(to, data, size);
    output->size += size;
}

static inline void put_byte(Output *output, unsigned byte)
{
    uint8_t *to = output_room(output, 1);
    if (!to)
        return;
    *to = (uint8_t)byte;
    output->size++;
}

/* Little-endian. */
static inline void put_u32(Output *output, uint32_t number)
{
    uint8_t bytes[4] = {(uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16),
                        (uint8_t)(number >> 24)};
    put_bytes(output, bytes, sizeof bytes);
}

static inline void put_varint(Output *output, uint64_t number)
{
    uint8_t *to = output_room(output, MAX_VARINT);
    if (!to)
        return;
    uint8_t *start = to;
    for (; number >= 0x80; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    output->size += (size_t)(to - start);
}

static inline void put_number(Output *output, int64_t number)
{
    put_varint(output, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

/* Begin a field; `step` is the difference from the previous field number, at most 15. */
static inline void put_field(Output *output, unsigned step, unsigned type)
{
    put_byte(output, step << 4 | type);
}

static inline void put_list(Output *output, size_t count, unsigned type)
{
    put_byte(output, (unsigned)(count < 15 ? count : 15) << 4 | type);
    if (count >= 15)
        put_varint(output, count);
}

static inline void put_number_field(Output *output, unsigned step, unsigned type, int64_t number)
{
    put_field(output, step, type);
    put_number(output, number);
}

static inline void put_binary(Output *output, const void *data, size_t size)
{
    put_varint(output, size);
    put_bytes(output, data, size);
}

static inline void put_stop(Output *output)
{
    put_byte(output, 0);
}

static inline void output_free(Output *output)
{
    free(output->data);
    *output = (Output){0};
}

#endif
