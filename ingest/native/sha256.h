/* SHA-256 (FIPS 180-4): with the processor's SHA instructions where it has them, or in plain C. */
#ifndef TONLAKE_SHA256_H
#define TONLAKE_SHA256_H

#include "heap.h"

/* Largest message of a job: descriptors, data, four depths and hashes, and room for the padding. */
#define SHA256_JOB_BYTES 320
#define SHA256_QUEUE 8

typedef void Sha256Compress(uint32_t state[8], const uint8_t *blocks, size_t count);
typedef void Sha256CompressPair(uint32_t left[8], const uint8_t *left_blocks, uint32_t right[8],
                                const uint8_t *right_blocks, size_t count);

typedef struct {
    Sha256Compress *compress;
    Sha256CompressPair *compress_pair;
} Sha256;

/* A short message that waits to be hashed together with another one. */
typedef struct {
    uint8_t message[SHA256_JOB_BYTES];
    size_t size;
    Hash *to;
} Sha256Job;

/* Choose the fastest way that this processor has; `portable` forces plain C. */
Sha256 sha256_choose(bool portable);
bool sha256_has_instructions(void);

void sha256(const Sha256 *sha, const uint8_t *data, size_t size, Hash *to);

/* Hash `count` jobs, two at a time: the SHA instructions work on two streams as fast as on one. */
void sha256_run(const Sha256 *sha, Sha256Job *jobs, size_t count);

#endif
