/* SHA-256 (FIPS 180-4): with the processor's SHA instructions where it has them, or in plain C. */
#ifndef TONLAKE_SHA256_H
#define TONLAKE_SHA256_H

#include "heap.h"

/* Largest message of a job: descriptors, data, four depths and hashes, and room for the padding. */
#define SHA256_BLOCK_BYTES 64
#define SHA256_JOB_BLOCKS 5

typedef void Sha256Compress(uint32_t state[8], const uint8_t *blocks, size_t count);
typedef void Sha256CompressPair(uint32_t left_state[8], const uint8_t *left,
                                uint32_t right_state[8], const uint8_t *right, size_t count);

typedef struct {
    Sha256Compress *compress;
    Sha256CompressPair *compress_pair; /* the same of two messages at once */
} Sha256;

/* A short message that is hashed together with another one. */
typedef struct {
    uint8_t message[(SHA256_JOB_BLOCKS + 1) * SHA256_BLOCK_BYTES]; /* one block more for padding */
    size_t size;
    Hash *to;
} Sha256Job;

/* Tell whether the processor has the instructions. Asking it takes long on a virtual machine. */
bool sha256_has_instructions(void);
Sha256 sha256_choose(bool with_instructions);

void sha256(const Sha256 *sha, const uint8_t *data, size_t size, Hash *to);

/* A message that is hashed together with another one. */
typedef struct {
    const uint8_t *data;
    size_t size;
    Hash *to;
} Sha256Message;

/* Hash two messages of any size, at once as far as both go. */
void sha256_two(const Sha256 *sha, const Sha256Message *left, const Sha256Message *right);

/* Number of blocks that a message of this size takes, with its end mark and length. */
static inline size_t sha256_blocks(size_t size)
{
    return (size + 1 + sizeof(uint64_t) + SHA256_BLOCK_BYTES - 1) / SHA256_BLOCK_BYTES;
}

/* Hash two messages of as many blocks each. */
void sha256_pair(const Sha256 *sha, Sha256Job *left, Sha256Job *right, size_t blocks);

#endif
