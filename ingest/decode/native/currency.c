/* Extra currencies. TL-B: extra_currencies$_ dict:(HashmapE 32 (VarUInteger 32)). */
#include "decoder.h"

#define KEY_BITS 32
#define MAX_AMOUNT_BYTES 31
/* 248 bits are below 10^75. */
#define MAX_DIGITS 75

/* Write a big-endian number in decimal and in quotes; the number is destroyed. */
static size_t write_decimal(uint8_t *number, unsigned bytes, char *to)
{
    char digits[MAX_DIGITS + 1];
    size_t count = 0, size = 0;
    for (unsigned first = 0;;) {
        unsigned rest = 0;
        for (unsigned i = first; i < bytes; i++) {
            rest = rest << 8 | number[i];
            number[i] = (uint8_t)(rest / 10);
            rest %= 10;
        }
        digits[count++] = (char)('0' + rest);
        while (first < bytes && !number[first])
            first++;
        if (first == bytes)
            break;
    }
    to[size++] = '"';
    while (count)
        to[size++] = digits[--count];
    to[size++] = '"';
    return size;
}

Status write_currencies(Block *block, TableName table, uint32_t root, Span *to)
{
    Heap *heap = &block->decoder->tables[table].heap;
    size_t start = heap->size;
    Hashmap map;
    Hash key;
    Slice value;
    if (!heap_append(heap, "{", 1))
        return NO_MEMORY;
    hashmap_open(&map, &block->tree, root, KEY_BITS);
    while (hashmap_next(&map, &key, &value)) {
        char text[2 * (MAX_DIGITS + 4)];
        uint8_t amount[MAX_AMOUNT_BYTES];
        size_t size = 0;
        unsigned bytes = (unsigned)slice_uint(&value, 5);
        slice_bytes(&value, amount, bytes);
        if (value.failed)
            return NOT_MINE;
        if (heap->size > start + 1)
            text[size++] = ',';
        size += write_decimal(key.bytes, KEY_BITS / 8, text + size);
        text[size++] = ':';
        size += write_decimal(amount, bytes, text + size);
        if (!heap_append(heap, text, size))
            return NO_MEMORY;
        if (!spend(block, size))
            return NOT_MINE;
    }
    if (!heap_append(heap, "}", 1))
        return NO_MEMORY;
    *to = (Span){start, (uint32_t)(heap->size - start)};
    return map.failed ? NOT_MINE : DONE;
}
