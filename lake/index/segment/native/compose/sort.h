/* A stable sort of numbered items by a key, then by an optional comparison. */
#ifndef TONLAKE_SORT_H
#define TONLAKE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t key;
    uint32_t at;
} Keyed;

/* Compare two items with equal keys, by their numbers: negative, zero or positive. */
typedef int (*Compare)(const void *context, uint32_t first, uint32_t second);

/* Sort; `compare` may be NULL. False without memory. */
bool sort_keyed(Keyed *items, size_t count, Compare compare, const void *context);

#endif
