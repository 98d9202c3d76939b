#include "hashmap.h"

/* Set up to 32 bits of a key, which are still 0. */
static void set_bits(Hash *key, unsigned at, uint64_t bits, unsigned count)
{
    uint64_t window = count ? bits << (64 - count - (at & 7)) : 0;
    for (unsigned byte = at >> 3; window; byte++, window <<= 8)
        key->bytes[byte] |= (uint8_t)(window >> 56);
}

static unsigned bit_length(unsigned value)
{
    unsigned length = 0;
    for (; value; value >>= 1)
        length++;
    return length;
}

/* Read HmLabel: hml_short$0 with a unary length, hml_long$10, hml_same$11. */
static void read_label(Slice *slice, Node *node, unsigned key_bits)
{
    unsigned room = key_bits - node->used, length = 0;
    bool is_same = false;
    if (!slice_bit(slice)) {
        while (slice_bit(slice))
            length++;
    } else {
        is_same = slice_bit(slice);
        bool bit = is_same && slice_bit(slice);
        length = (unsigned)slice_uint(slice, bit_length(room));
        if (bit && length <= room)
            for (unsigned i = 0; i < length; i++)
                set_bits(&node->key, node->used + i, 1, 1);
    }
    if (length > room) {
        slice->failed = true;
        return;
    }
    for (unsigned at = 0; !is_same && at < length;) {
        unsigned count = length - at < 32 ? length - at : 32;
        set_bits(&node->key, node->used + at, slice_uint(slice, count), count);
        at += count;
    }
    node->used = (uint16_t)(node->used + length);
}

/* Push the children of a fork, the left one on top. */
static void push_fork(Hashmap *map, const Node *node, uint32_t left, uint32_t right)
{
    Node *one = &map->todo[map->count++], *zero = &map->todo[map->count++];
    *one = *zero = *node;
    set_bits(&one->key, node->used, 1, 1);
    one->used = zero->used = (uint16_t)(node->used + 1);
    one->cell = right;
    zero->cell = left;
}

static void begin(Hashmap *map, const Tree *tree, unsigned key_bits)
{
    map->tree = tree;
    map->key_bits = key_bits;
    map->count = 0;
    map->steps = (uint64_t)tree->count + MAX_REPEATS;
    map->has_first = map->skip_pruned = map->failed = false;
}

void hashmap_open(Hashmap *map, const Tree *tree, uint32_t root, unsigned key_bits)
{
    begin(map, tree, key_bits);
    map->todo[map->count++] = (Node){.cell = root};
}

void hashmap_open_below(Hashmap *map, const Tree *tree, uint32_t cell, unsigned key_bits,
                        const Hash *key, unsigned used)
{
    begin(map, tree, key_bits);
    map->todo[map->count++] = (Node){.key = *key, .cell = cell, .used = (uint16_t)used};
}

void hashmap_open_inline(Hashmap *map, const Tree *tree, const Slice *start, unsigned key_bits)
{
    Node root = {0};
    begin(map, tree, key_bits);
    map->first = *start;
    read_label(&map->first, &root, key_bits);
    if (root.used == key_bits) {
        map->has_first = true;
        map->todo[0] = root;
    } else {
        uint32_t left = slice_ref(&map->first), right = slice_ref(&map->first);
        push_fork(map, &root, left, right);
    }
    map->failed = map->first.failed;
}

static bool refuse(Hashmap *map)
{
    map->failed = true;
    return false;
}

bool hashmap_next(Hashmap *map, Hash *key, Slice *value)
{
    if (map->failed)
        return false;
    if (map->has_first) {
        map->has_first = false;
        *key = map->todo[0].key;
        *value = map->first;
        return true;
    }
    while (map->count) {
        Node node = map->todo[--map->count];
        if (--map->steps == 0)
            return refuse(map);
        if (map->skip_pruned && cell_kind(&map->tree->cells[node.cell]) == PRUNED)
            continue;
        Slice slice = slice_open(map->tree, node.cell);
        read_label(&slice, &node, map->key_bits);
        if (slice.failed)
            return refuse(map);
        if (node.used == map->key_bits) {
            *key = node.key;
            *value = slice;
            return true;
        }
        if (slice_refs_left(&slice) < 2)
            return refuse(map);
        push_fork(map, &node, slice.refs[0], slice.refs[1]);
    }
    return false;
}
