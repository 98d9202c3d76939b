/* Open addressing; copied keys are stored in blocks. */
#include "map.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16, MIN_ROOM = 64 };

struct Block {
    Block *before;
    size_t size, room;
    uint8_t data[];
};

static inline uint64_t rotate(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void mix(uint64_t state[4])
{
    state[0] += state[1];
    state[1] = rotate(state[1], 13) ^ state[0];
    state[0] = rotate(state[0], 32);
    state[2] += state[3];
    state[3] = rotate(state[3], 16) ^ state[2];
    state[0] += state[3];
    state[3] = rotate(state[3], 21) ^ state[0];
    state[2] += state[1];
    state[1] = rotate(state[1], 17) ^ state[2];
    state[2] = rotate(state[2], 32);
}

static inline void add_word(uint64_t state[4], uint64_t word)
{
    state[3] ^= word;
    mix(state);
    state[0] ^= word;
}

uint64_t map_hash(const Map *map, Bytes key)
{
    uint64_t state[4] = {
        map->secret[0] ^ 0x736f6d6570736575, map->secret[1] ^ 0x646f72616e646f6d,
        map->secret[0] ^ 0x6c7967656e657261, map->secret[1] ^ 0x7465646279746573};
    uint64_t word, last = (uint64_t)key.size << 56;
    size_t at = 0;
    for (; at + sizeof word <= key.size; at += sizeof word) {
        memcpy(&word, key.data + at, sizeof word);
        add_word(state, word);
    }
    for (int shift = 0; at < key.size; at++, shift += 8)
        last |= (uint64_t)key.data[at] << shift;
    add_word(state, last);
    state[2] ^= 0xff;
    for (int round = 0; round < 3; round++)
        mix(state);
    return state[0] ^ state[1] ^ state[2] ^ state[3];
}

Entry *map_find(const Map *map, Bytes key, uint64_t hash)
{
    if (!map->count)
        return NULL;
    for (size_t at = hash & (map->room - 1);; at = (at + 1) & (map->room - 1)) {
        Entry *entry = &map->entries[at];
        if (!entry->key)
            return NULL;
        if (entry->hash == (uint32_t)hash && entry->size == key.size &&
            memcmp(entry->key, key.data, key.size) == 0)
            return entry;
    }
}

static void place_entry(Map *map, Entry entry)
{
    size_t at = entry.hash & (map->room - 1);
    while (map->entries[at].key)
        at = (at + 1) & (map->room - 1);
    map->entries[at] = entry;
}

/* Make room for one more entry, keeping a third of the places free. */
static bool make_room(Map *map)
{
    if (map->count + 1 < map->room - map->room / 3)
        return true;
    size_t room = map->room ? 2 * map->room : MIN_ROOM, old = map->room;
    Entry *before = map->entries, *entries = calloc(room, sizeof *entries);
    if (!entries)
        return false;
    map->entries = entries;
    map->room = room;
    for (size_t at = 0; at < old; at++)
        if (before[at].key)
            place_entry(map, before[at]);
    free(before);
    return true;
}

static Block *add_block(Map *map, size_t room)
{
    Block *made = malloc(sizeof *made + room);
    if (made) {
        *made = (Block){.before = map->blocks, .room = room};
        map->blocks = made;
    }
    return made;
}

static const uint8_t *copy_key(Map *map, Bytes key)
{
    Block *block = map->blocks;
    if (!block || block->room - block->size < key.size) {
        block = add_block(map, key.size > BLOCK_BYTES ? key.size : BLOCK_BYTES);
        if (!block)
            return NULL;
    }
    uint8_t *copy = block->data + block->size;
    memcpy(copy, key.data, key.size);
    block->size += key.size;
    return copy;
}

bool map_add(Map *map, Bytes key, uint64_t hash, uint64_t value, bool copies)
{
    if (!make_room(map))
        return false;
    const uint8_t *data = copies ? copy_key(map, key) : key.data;
    if (!data)
        return false;
    place_entry(map, (Entry){data, value, (uint32_t)hash, (uint32_t)key.size});
    map->count++;
    return true;
}

void map_clear(Map *map)
{
    while (map->blocks) {
        Block *before = map->blocks->before;
        free(map->blocks);
        map->blocks = before;
    }
    free(map->entries);
    map->entries = NULL;
    map->room = map->count = 0;
}
