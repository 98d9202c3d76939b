/* Growing memory, hashes, and the status of a stage of decoding. */
#ifndef TONLAKE_HEAP_H
#define TONLAKE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HASH_BYTES 32

typedef struct {
    uint8_t bytes[HASH_BYTES];
} Hash;

/* NOT_MINE: the Python reference decides about this block and raises any error. */
typedef enum { DONE, NOT_MINE, NO_MEMORY } Status;

typedef struct {
    uint8_t *data;
    size_t size, capacity;
} Heap;

/* From this size on, memory uses huge pages: getting a page costs more than filling it. */
#define LARGE_BYTES (4u << 20)

/* Advise the system that memory of LARGE_BYTES or more will be used. */
void advise_large(void *data, size_t size);

/* Reserve `extra` bytes after the used ones; false if there is no memory. */
static inline bool heap_reserve(Heap *heap, size_t extra)
{
    if (extra <= heap->capacity - heap->size)
        return true;
    if (extra > SIZE_MAX / 4 - heap->size)
        return false;
    size_t capacity = 2 * heap->capacity;
    if (capacity < heap->size + extra)
        capacity = heap->size + extra;
    if (capacity < 256)
        capacity = 256;
    uint8_t *data = realloc(heap->data, capacity);
    if (!data)
        return false;
    heap->data = data;
    heap->capacity = capacity;
    if (capacity >= LARGE_BYTES)
        advise_large(data, capacity);
    return true;
}

static inline void heap_free(Heap *heap)
{
    free(heap->data);
    *heap = (Heap){0};
}

/* Copy a few bytes: compilers turn a memcpy of a bounded length into something slow. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size >= 16) {
        for (size_t at = 0; at + 16 < size; at += 16)
            memcpy(to + at, from + at, 16);
        memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, from, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else {
        for (size_t at = 0; at < size; at++)
            to[at] = from[at];
    }
}

/* Allocate an array of `count` elements without keeping old ones; NULL if there is no memory. */
static inline void *heap_renew(Heap *heap, size_t count, size_t element)
{
    heap->size = 0;
    if (count > SIZE_MAX / 4 / element)
        return NULL;
    if (heap->capacity < count * element)
        heap_free(heap);
    return heap_reserve(heap, count * element + 1) ? heap->data : NULL;
}

static inline bool heap_append(Heap *heap, const void *bytes, size_t size)
{
    if (!heap_reserve(heap, size))
        return false;
    if (size)
        memcpy(heap->data + heap->size, bytes, size);
    heap->size += size;
    return true;
}

static inline bool hash_equal(const Hash *left, const Hash *right)
{
    return memcmp(left->bytes, right->bytes, HASH_BYTES) == 0;
}

/* Map a hash to a slot of a table; with a random seed no input can force collisions. */
static inline uint64_t hash_mix(const Hash *hash, uint64_t seed)
{
    uint64_t low, high;
    memcpy(&low, hash->bytes, sizeof low);
    memcpy(&high, hash->bytes + sizeof low, sizeof high);
    low = (low ^ seed) * 0x9e3779b97f4a7c15;
    return (low ^ low >> 32 ^ high) * 0x9e3779b97f4a7c15 >> 32;
}

/* Write the low `count` bytes of a number, big-endian. */
static inline void store_be(uint8_t *to, uint64_t value, unsigned count)
{
    while (count) {
        to[--count] = (uint8_t)value;
        value >>= 8;
    }
}

/* Read `count` (at most 8) bytes, big-endian. */
static inline uint64_t load_be(const uint8_t *from, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 8 | from[i];
    return value;
}

/* The same for eight and for four bytes, in a form that compilers recognize. */
static inline uint64_t load_be64(const uint8_t *from)
{
    return (uint64_t)from[0] << 56 | (uint64_t)from[1] << 48 | (uint64_t)from[2] << 40 |
           (uint64_t)from[3] << 32 | (uint64_t)from[4] << 24 | (uint64_t)from[5] << 16 |
           (uint64_t)from[6] << 8 | (uint64_t)from[7];
}

static inline uint32_t load_be32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 |
           (uint32_t)from[3];
}

static inline void store_be32(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 24);
    to[1] = (uint8_t)(value >> 16);
    to[2] = (uint8_t)(value >> 8);
    to[3] = (uint8_t)value;
}

#endif
