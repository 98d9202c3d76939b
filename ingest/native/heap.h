/* Memory that grows, hashes, and what a stage of decoding ends with. */
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

/* NOT_MINE: the Python reference decides about this block; it also words every error. */
typedef enum { DONE, NOT_MINE, NO_MEMORY } Status;

typedef struct {
    uint8_t *data;
    size_t size, capacity;
} Heap;

/* Make room for `extra` bytes behind the used ones; false when there is no memory. */
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
    return true;
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

static inline void heap_free(Heap *heap)
{
    free(heap->data);
    *heap = (Heap){0};
}

static inline bool hash_equal(const Hash *left, const Hash *right)
{
    return memcmp(left->bytes, right->bytes, HASH_BYTES) == 0;
}

/* Spread hashes over the slots of a table; with a random seed nobody can make them meet. */
static inline uint64_t hash_mix(const Hash *hash, uint64_t seed)
{
    uint64_t low, high;
    memcpy(&low, hash->bytes, sizeof low);
    memcpy(&high, hash->bytes + sizeof low, sizeof high);
    low = (low ^ seed) * 0x9e3779b97f4a7c15;
    return (low ^ low >> 32 ^ high) * 0x9e3779b97f4a7c15 >> 32;
}

/* Write the low `count` bytes of a number, highest first. */
static inline void store_be(uint8_t *to, uint64_t value, unsigned count)
{
    while (count) {
        to[--count] = (uint8_t)value;
        value >>= 8;
    }
}

/* Read `count` (at most 8) bytes, highest first. */
static inline uint64_t load_be(const uint8_t *from, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 8 | from[i];
    return value;
}

#endif
