/* Reads a cell bit by bit and reference by reference. Every read is checked. A read past the end
   returns 0 and sets `failed` permanently, so that a type can be read to its end before checking
   once whether it was complete. */
#ifndef TONLAKE_SLICE_H
#define TONLAKE_SLICE_H

#include "tree.h"

typedef struct {
    const uint8_t *data;
    uint32_t refs[MAX_REFS];
    uint16_t pos, end; /* bits */
    uint8_t ref, ref_end;
    bool failed; /* a read went past the end, or the cell is exotic */
    bool wide;   /* an amount was above 2^63 - 1 */
} Slice;

/* An amount of up to 128 bits, in the layout of decimal128. */
typedef struct {
    uint64_t low, high;
} Amount;

static inline Slice slice_open(const Tree *tree, uint32_t index)
{
    const Cell *cell = &tree->cells[index];
    bool exotic = cell->d1 & EXOTIC_BIT;
    Slice slice = {.data = cell->data, .failed = exotic};
    memcpy(slice.refs, cell->refs, sizeof slice.refs);
    slice.end = exotic ? 0 : cell->bits;
    slice.ref_end = exotic ? 0 : (uint8_t)cell_ref_count(cell);
    return slice;
}

static inline unsigned slice_bits_left(const Slice *slice)
{
    return (unsigned)slice->end - slice->pos;
}

static inline unsigned slice_refs_left(const Slice *slice)
{
    return (unsigned)slice->ref_end - slice->ref;
}

/* Skip bits; if there are fewer, go to the end and return false. */
static inline bool slice_skip(Slice *slice, unsigned bits)
{
    if (bits > slice_bits_left(slice)) {
        slice->failed = true;
        slice->pos = slice->end;
        return false;
    }
    slice->pos = (uint16_t)(slice->pos + bits);
    return true;
}

/* Read an unsigned integer of at most 64 bits. */
static inline uint64_t slice_uint(Slice *slice, unsigned bits)
{
    unsigned shift = slice->pos & 7, bytes = (shift + bits + 7) / 8;
    const uint8_t *at = slice->data + (slice->pos >> 3);
    unsigned room = (slice->end + 7u) / 8 - (slice->pos >> 3);
    if (!slice_skip(slice, bits) || !bits)
        return 0;
    if (room >= 9)
        return (load_be64(at) << shift | at[8] >> (8 - shift)) >> (64 - bits);
    if (bytes <= 8)
        return load_be(at, bytes) >> (8 * bytes - shift - bits) & (UINT64_MAX >> (64 - bits));
    return (load_be64(at) << shift | at[8] >> (8 - shift)) >> (64 - bits);
}

static inline bool slice_bit(Slice *slice)
{
    return slice_uint(slice, 1);
}

/* Read a signed integer (two's complement) of 1 to 64 bits. */
static inline int64_t slice_int(Slice *slice, unsigned bits)
{
    uint64_t value = slice_uint(slice, bits), sign = 1ULL << (bits - 1);
    return (int64_t)((value ^ sign) - sign);
}

static inline void slice_bytes(Slice *slice, uint8_t *to, unsigned count)
{
    unsigned shift = slice->pos & 7;
    const uint8_t *at = slice->data + (slice->pos >> 3);
    if (!slice_skip(slice, 8 * count)) {
        memset(to, 0, count);
    } else if (!shift) {
        memcpy(to, at, count);
    } else {
        unsigned i = 0;
        for (; i + 8 <= count; i += 8) {
            uint64_t word = load_be64(at + i) << shift | at[i + 8] >> (8 - shift);
            store_be32(to + i, (uint32_t)(word >> 32));
            store_be32(to + i + 4, (uint32_t)word);
        }
        for (; i < count; i++)
            to[i] = (uint8_t)(at[i] << shift | at[i + 1] >> (8 - shift));
    }
}

/* Read all bits that are left, of an incomplete byte those at its top. */
static inline void slice_tail(Slice *slice, uint8_t *to)
{
    unsigned bits = slice_bits_left(slice), rest = bits & 7;
    slice_bytes(slice, to, bits / 8);
    if (rest)
        to[bits / 8] = (uint8_t)(slice_uint(slice, rest) << (8 - rest));
}

static inline Hash slice_hash(Slice *slice)
{
    Hash hash;
    slice_bytes(slice, hash.bytes, HASH_BYTES);
    return hash;
}

/* Read VarUInteger with a length field of `length_bits` (at most 4) bits. */
static inline Amount slice_amount(Slice *slice, unsigned length_bits)
{
    unsigned bits = 8 * (unsigned)slice_uint(slice, length_bits);
    Amount amount = {0};
    if (bits > 64)
        amount.high = slice_uint(slice, bits - 64);
    amount.low = slice_uint(slice, bits > 64 ? 64 : bits);
    return amount;
}

static inline bool amount_is_wide(Amount amount)
{
    return amount.high || amount.low > INT64_MAX;
}

/* Read a number stored in rows as int64; one that does not fit sets `wide`. */
static inline int64_t slice_fitting(Slice *slice, Amount amount)
{
    slice->wide |= amount_is_wide(amount);
    return (int64_t)(amount.low & INT64_MAX);
}

/* Read Grams (VarUInteger 16), in nanoton. */
static inline int64_t slice_grams(Slice *slice)
{
    return slice_fitting(slice, slice_amount(slice, 4));
}

/* Read uint64 that is stored in rows as int64, such as a logical time. */
static inline int64_t slice_lt(Slice *slice)
{
    return slice_fitting(slice, (Amount){.low = slice_uint(slice, 64)});
}

/* Read a reference; return cell 0, which every tree has, if there is none. */
static inline uint32_t slice_ref(Slice *slice)
{
    if (slice->ref >= slice->ref_end) {
        slice->failed = true;
        return 0;
    }
    return slice->refs[slice->ref++];
}

/* Read `Maybe ^X`; return false if it is nothing. */
static inline bool slice_maybe_ref(Slice *slice, uint32_t *to)
{
    if (!slice_bit(slice))
        return false;
    *to = slice_ref(slice);
    return true;
}

/* Skip a CurrencyCollection. */
static inline void slice_skip_currencies(Slice *slice)
{
    uint32_t other;
    slice_skip(slice, 8 * (unsigned)slice_uint(slice, 4));
    slice_maybe_ref(slice, &other);
}

#endif
