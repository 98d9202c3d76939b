/* A map from bytes to numbers. Attackers can choose keys on the chain, so hashes have a secret. */
#ifndef TONLAKE_MAP_H
#define TONLAKE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *data;
    size_t size;
} Bytes;

typedef struct {
    const uint8_t *key; /* NULL: free */
    uint64_t value;
    uint32_t hash, size;
} Entry;

typedef struct Block Block;

typedef struct {
    uint64_t secret[2];
    Entry *entries;
    size_t room, count; /* places, a power of two; entries */
    Block *blocks;      /* bytes of copied keys */
} Map;

/* Hash bytes with the map's secret (SipHash-1-3). */
uint64_t map_hash(const Map *map, Bytes key);

/* Find the entry of a key, or NULL; valid until the next entry is added. */
Entry *map_find(const Map *map, Bytes key, uint64_t hash);

/* Add a new key; without `copies`, its bytes must outlive the map. False without
   memory. */
bool map_add(Map *map, Bytes key, uint64_t hash, uint64_t value, bool copies);

/* Remove all entries and free their memory. */
void map_clear(Map *map);

#endif
