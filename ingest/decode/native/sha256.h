/* SHA-256 (FIPS 180-4): with the processor's SHA instructions if available, or eight messages at
   once in wide registers, or in plain C. */
#ifndef TONLAKE_SHA256_H
#define TONLAKE_SHA256_H

#include "heap.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define SHA256_X86_64 1
#else
#define SHA256_X86_64 0
#endif

/* Largest message of a job: descriptors, data, four depths and hashes, and the padding. */
#define SHA256_BLOCK_BYTES 64
#define SHA256_JOB_BLOCKS 5

#define SHA256_LANES 8

typedef void Sha256Compress(uint32_t state[8], const uint8_t *blocks, size_t count);
typedef void Sha256CompressPair(uint32_t left_state[8], const uint8_t *left,
                                uint32_t right_state[8], const uint8_t *right, size_t count);
/* Word i of the state of message j is state[i][j]; `at` advances to the next block. */
typedef void Sha256CompressLanes(uint32_t state[8][SHA256_LANES], const uint8_t *at[SHA256_LANES],
                                 size_t count);

typedef struct {
    Sha256Compress *compress;
    Sha256CompressPair *compress_pair;   /* of two messages at once */
    Sha256CompressLanes *compress_lanes; /* of eight, or NULL if that gains nothing */
    size_t lanes;                        /* optimal number of messages hashed together */
} Sha256;

/* Variants, the fastest last. */
typedef enum { SHA256_PORTABLE, SHA256_AVX2, SHA256_AVX512, SHA256_NI, SHA256_WAYS } Sha256Way;

/* A short message that is hashed together with others. */
typedef struct {
    uint8_t message[(SHA256_JOB_BLOCKS + 1) * SHA256_BLOCK_BYTES]; /* one more block for padding */
    size_t size;
    Hash *to;
} Sha256Job;

/* Return whether the processor supports a variant. The check is slow on a virtual machine. */
bool sha256_can(Sha256Way way);
Sha256 sha256_choose(Sha256Way way);

void sha256(const Sha256 *sha, const uint8_t *data, size_t size, Hash *to);

/* A message of any size that is hashed together with others. */
typedef struct {
    const uint8_t *data;
    size_t size;
    Hash *to;
} Sha256Message;

/* Hash messages, given largest first, several at once as far as possible. */
void sha256_messages(const Sha256 *sha, const Sha256Message *messages, size_t count);

/* Return the number of blocks of a message, with its end mark and length. */
static inline size_t sha256_blocks(size_t size)
{
    return (size + 1 + sizeof(uint64_t) + SHA256_BLOCK_BYTES - 1) / SHA256_BLOCK_BYTES;
}

/* Hash at most `sha->lanes` messages, all with `blocks` blocks. */
void sha256_jobs(const Sha256 *sha, Sha256Job *jobs, size_t count, size_t blocks);

/* The round constants. */
extern const uint32_t SHA256_ROUND[64];

/* In lanes.c and shani.c, only on x86-64. */
Sha256CompressLanes sha256_lanes_avx2, sha256_lanes_avx512;
Sha256Compress sha256_compress_ni;
Sha256CompressPair sha256_compress_pair_ni;
bool sha256_can_ni(void);

#endif
