/* Iterates over TL-B dictionaries (Hashmap n X) in order of keys, without recursion. */
#ifndef TONLAKE_HASHMAP_H
#define TONLAKE_HASHMAP_H

#include "slice.h"

#define MAX_KEY_BITS 256
/* Maximum steps of one walk to nodes it has visited before: a few crafted cells could represent
   2^256 keys. */
#define MAX_REPEATS 10000

typedef struct {
    Hash key; /* its first `used` bits are known, the others are 0 */
    uint32_t cell;
    uint16_t used;
} Node;

typedef struct {
    const Tree *tree;
    Node todo[MAX_KEY_BITS + 2]; /* a fork pops one node and pushes two, key_bits times */
    unsigned count, key_bits;
    uint64_t steps;
    Slice first; /* the value of an inline map with one entry */
    bool has_first, skip_pruned, failed;
} Hashmap;

/* Start at a root cell. */
void hashmap_open(Hashmap *map, const Tree *tree, uint32_t root, unsigned key_bits);

/* Start at a node below the root; the first `used` bits of `key` are the prefix before its
   label. */
void hashmap_open_below(Hashmap *map, const Tree *tree, uint32_t cell, unsigned key_bits,
                        const Hash *key, unsigned used);

/* Start at a root that is inline in a slice; data after the map are not read. */
void hashmap_open_inline(Hashmap *map, const Tree *tree, const Slice *start, unsigned key_bits);

/* Step to the next entry: its key, left-aligned, and a slice at its value. False at the end, and if
   the map is malformed, which sets `failed`. */
bool hashmap_next(Hashmap *map, Hash *key, Slice *value);

#endif
