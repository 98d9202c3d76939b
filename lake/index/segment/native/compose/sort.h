/* A stable sort of numbered things by a key, and by what else they have where keys are equal. */
#ifndef TONLAKE_SORT_H
#define TONLAKE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t key;
    uint32_t at;
} Keyed;

/* Compare two things of one key by their numbers: below, at or above zero. */
typedef int (*Compare)(const void *context, uint32_t first, uint32_t second);

/* Sort; `compare` is NULL where keys are all there is. False without memory. */
bool sort_keyed(Keyed *items, size_t count, Compare compare, const void *context);

#endif
