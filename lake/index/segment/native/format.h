/* Constants of the segment format, shared by writer and reader: see module
   tonlake.lake.index.segment.shape. */
#ifndef TONLAKE_SEGMENT_FORMAT_H
#define TONLAKE_SEGMENT_FORMAT_H

#include <stdint.h>

#define HASH_BYTES 32
#define ACCOUNT_ID_BYTES 36
#define KEY_BYTES 8
/* Nanoton per unit of gas outside the masterchain: config parameter 21, gas_price / 65536. */
#define GAS_PRICE 400

/* Kinds of rows, by their numbers. */
typedef enum { TRANSACTION, MESSAGE, FACTS, STATE, TRACE, KINDS } Kind;

/* Forms of bytes. */
enum {
    OWN_ACCOUNT,
    HASH_BEFORE,
    IN_HASH,
    FAR_HASH,
    FAR_BYTES,
    STATE_BEFORE,
    NEXT_BYTES,
    LITERAL
};

/* States of a record; numbers from SHAPED on are those of shapes. */
enum { NO_STATE, SAME_STATE, SHAPED };

/* Return a hash's first 8 bytes, so that keys sort like hashes. */
static inline uint64_t cut_hash(const uint8_t *hash)
{
    uint64_t key = 0;
    for (int at = 0; at < KEY_BYTES; at++)
        key = key << 8 | hash[at];
    return key;
}

/* The bits of a shard in reverse order. */
static inline uint64_t reverse_bits(uint64_t value)
{
    uint64_t reversed = 0;
    for (int at = 0; at < 64; at++, value >>= 1)
        reversed = reversed << 1 | (value & 1);
    return reversed;
}

#endif
