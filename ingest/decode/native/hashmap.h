/* Hash maps of TL-B (Hashmap n X), walked from left to right without recursion. */
#ifndef TONLAKE_HASHMAP_H
#define TONLAKE_HASHMAP_H

#include "slice.h"

#define MAX_KEY_BITS 256
/* Steps that one walk may make on nodes it has met before: a few crafted cells could stand for
   2^256 keys. */
#define MAX_REPEATS 10000

typedef struct {
    Hash key; /* its first `used` bits are known, the others are 0 */
    uint32_t cell;
    uint16_t used;
} Node;

typedef struct {
    const Tree *tree;
    Node todo[MAX_KEY_BITS + 2]; /* a fork takes one node off and puts two on, key_bits times */
    unsigned count, key_bits;
    uint64_t steps;
    Slice first; /* the value of a map of one entry that stands inline */
    bool has_first, skip_pruned, failed;
} Hashmap;

/* Begin at a root cell. */
void hashmap_open(Hashmap *map, const Tree *tree, uint32_t root, unsigned key_bits);

/* Begin at a node below the root, before whose label the first `used` bits of the key stand. */
void hashmap_open_below(Hashmap *map, const Tree *tree, uint32_t cell, unsigned key_bits,
                        const Hash *key, unsigned used);

/* Begin at a root that stands inline in a slice; what follows the map is not read. */
void hashmap_open_inline(Hashmap *map, const Tree *tree, const Slice *start, unsigned key_bits);

/* Step to the next entry: its key, left-aligned, and a slice at its value. False at the end, and
   when the map is broken, which `failed` says. */
bool hashmap_next(Hashmap *map, Hash *key, Slice *value);

#endif
