/* Writes the bits of a cell. */
#ifndef TONLAKE_BITS_H
#define TONLAKE_BITS_H

#include "slice.h"

/* `bytes` is zero after the last bit, at least up to the next byte, with space for a word. */
typedef struct {
    uint8_t bytes[MAX_BITS / 8 + 1 + 32];
    unsigned count;
    bool failed; /* more than MAX_BITS, or a number that does not fit */
} Bits;

static inline void bits_open(Bits *bits)
{
    bits->bytes[0] = 0;
    bits->count = 0;
    bits->failed = false;
}

/* Write an integer in `size` (at most 64) bits. */
static inline void bits_uint(Bits *bits, uint64_t value, unsigned size)
{
    if (!size)
        return;
    if (bits->count + size > MAX_BITS || (size < 64 && value >> size)) {
        bits->failed = true;
        return;
    }
    uint8_t *at = bits->bytes + (bits->count >> 3);
    unsigned shift = bits->count & 7;
    uint64_t high = value << (64 - size), word = (uint64_t)at[0] << 56 | high >> shift;
    store_be32(at, (uint32_t)(word >> 32));
    store_be32(at + 4, (uint32_t)word);
    at[8] = shift ? (uint8_t)(high << (64 - shift) >> 56) : 0;
    bits->count += size;
}

static inline void bits_hash(Bits *bits, const Hash *hash)
{
    for (unsigned at = 0; at < HASH_BYTES; at += 8)
        bits_uint(bits, load_be64(hash->bytes + at), 64);
}

/* Write VarUInteger in the fewest bytes; its length field has `length_bits` bits. */
static inline void bits_amount(Bits *bits, Amount amount, unsigned length_bits)
{
    unsigned high = 0, low = 0;
    for (uint64_t rest = amount.high; rest; rest >>= 8)
        high++;
    for (uint64_t rest = amount.low; rest; rest >>= 8)
        low++;
    if (high)
        low = 8;
    bits_uint(bits, high + low, length_bits);
    bits_uint(bits, amount.high, 8 * high);
    bits_uint(bits, amount.low, 8 * low);
}

/* Write Grams, in nanoton. */
static inline void bits_grams(Bits *bits, int64_t value)
{
    bits_amount(bits, (Amount){.low = (uint64_t)value}, 4);
}

/* Write `Maybe Grams`. */
static inline void bits_maybe_grams(Bits *bits, bool is_there, int64_t value)
{
    bits_uint(bits, is_there, 1);
    if (is_there)
        bits_grams(bits, value);
}

/* Write `Maybe int32`. */
static inline void bits_maybe_int32(Bits *bits, bool is_there, int32_t value)
{
    bits_uint(bits, is_there, 1);
    if (is_there)
        bits_uint(bits, (uint32_t)value, 32);
}

/* Return whether a cell begins with the bits. */
static inline bool bits_lead(const Bits *bits, const Cell *cell)
{
    unsigned bytes = bits->count >> 3, rest = bits->count & 7;
    if (bits->failed || bits->count > cell->bits || memcmp(bits->bytes, cell->data, bytes))
        return false;
    return !rest || (bits->bytes[bytes] ^ cell->data[bytes]) >> (8 - rest) == 0;
}

/* Return whether a cell is ordinary, without pruned descendants, and has exactly these bits and
   this number of references. */
static inline bool bits_are_all(const Bits *bits, const Cell *cell, unsigned refs)
{
    return cell->d1 == refs && cell->bits == bits->count && bits_lead(bits, cell);
}

#endif
