#include "sha256.h"

#define BLOCK_BYTES SHA256_BLOCK_BYTES
#define LENGTH_BYTES sizeof(uint64_t)

static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

const uint32_t SHA256_ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

typedef uint32_t Word;

#define INLINE static inline
#include "rounds.h"

static void compress_portable(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    for (; count; count--, blocks += BLOCK_BYTES) {
        uint32_t w[16];
        for (unsigned i = 0; i < 16; i++)
            w[i] = load_be32(blocks + 4 * i);
        run_rounds(state, w);
    }
}

static void write_hash(const uint32_t state[8], Hash *to)
{
    for (unsigned i = 0; i < 8; i++)
        store_be32(to->bytes + 4 * i, state[i]);
}

static void compress_pair_portable(uint32_t left_state[8], const uint8_t *left,
                                   uint32_t right_state[8], const uint8_t *right, size_t count)
{
    compress_portable(left_state, left, count);
    compress_portable(right_state, right, count);
}

#if SHA256_X86_64

bool sha256_can(Sha256Way way)
{
    if (way == SHA256_NI)
        return sha256_can_ni();
    if (way == SHA256_AVX512)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512vl");
    return way == SHA256_PORTABLE || __builtin_cpu_supports("avx2");
}

Sha256 sha256_choose(Sha256Way way)
{
    if (way == SHA256_NI)
        return (Sha256){sha256_compress_ni, sha256_compress_pair_ni, NULL, 2};
    if (way == SHA256_PORTABLE)
        return (Sha256){compress_portable, compress_pair_portable, NULL, 2};
    return (Sha256){compress_portable, compress_pair_portable,
                    way == SHA256_AVX512 ? sha256_lanes_avx512 : sha256_lanes_avx2, SHA256_LANES};
}

#else

bool sha256_can(Sha256Way way)
{
    return way == SHA256_PORTABLE;
}

Sha256 sha256_choose(Sha256Way way)
{
    (void)way;
    return (Sha256){compress_portable, compress_pair_portable, NULL, 2};
}

#endif

/* Pad the rest of a message in `tail`, which has space for it and one more block; return its number
   of blocks. Clearing a fixed number of bytes is faster than clearing the exact number. */
static inline size_t pad(uint8_t *tail, size_t left, size_t size)
{
    size_t blocks = sha256_blocks(left);
    memset(tail + left, 0, BLOCK_BYTES + LENGTH_BYTES);
    tail[left] = 0x80;
    store_be32(tail + blocks * BLOCK_BYTES - 8, (uint32_t)((uint64_t)size >> 29));
    store_be32(tail + blocks * BLOCK_BYTES - 4, (uint32_t)(size << 3));
    return blocks;
}

/* Compress the rest of a message after its first `done` blocks. */
static void finish(const Sha256 *sha, uint32_t state[8], const uint8_t *data, size_t size,
                   size_t done, Hash *to)
{
    uint8_t tail[3 * BLOCK_BYTES];
    size_t whole = size / BLOCK_BYTES, left = size % BLOCK_BYTES;
    sha->compress(state, data + done * BLOCK_BYTES, whole - done);
    if (left)
        memcpy(tail, data + whole * BLOCK_BYTES, left);
    sha->compress(state, tail, pad(tail, left, size));
    write_hash(state, to);
}

void sha256(const Sha256 *sha, const uint8_t *data, size_t size, Hash *to)
{
    uint32_t state[8];
    memcpy(state, START, sizeof state);
    finish(sha, state, data, size, 0, to);
}

static void hash_two(const Sha256 *sha, const Sha256Message *left, const Sha256Message *right)
{
    uint32_t a[8], b[8];
    size_t both = (left->size < right->size ? left->size : right->size) / BLOCK_BYTES;
    memcpy(a, START, sizeof a);
    memcpy(b, START, sizeof b);
    sha->compress_pair(a, left->data, b, right->data, both);
    finish(sha, a, left->data, left->size, both, left->to);
    finish(sha, b, right->data, right->size, both, right->to);
}

static void start_lanes(uint32_t state[8][SHA256_LANES])
{
    for (unsigned i = 0; i < 8; i++)
        for (unsigned lane = 0; lane < SHA256_LANES; lane++)
            state[i][lane] = START[i];
}

static void take_lane(uint32_t state[8][SHA256_LANES], size_t lane, uint32_t to[8])
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = state[i][lane];
}

/* The largest comes first. Finished messages stay in their lanes, and are ignored. */
static void hash_in_lanes(const Sha256 *sha, const Sha256Message *messages, size_t count)
{
    uint32_t state[8][SHA256_LANES], own[8];
    const uint8_t *at[SHA256_LANES];
    size_t done = 0;
    start_lanes(state);
    for (size_t lane = 0; lane < SHA256_LANES; lane++)
        at[lane] = messages[lane < count ? lane : 0].data;
    for (size_t left = count; left-- > 0;) {
        const Sha256Message *message = &messages[left];
        size_t whole = left ? message->size / BLOCK_BYTES : done; /* a single one gains nothing */
        sha->compress_lanes(state, at, whole - done);
        done = whole;
        at[left] = at[0];
        take_lane(state, left, own);
        finish(sha, own, message->data, message->size, done, message->to);
    }
}

void sha256_messages(const Sha256 *sha, const Sha256Message *messages, size_t count)
{
    for (size_t i = 0; i < count; i += sha->lanes) {
        size_t some = count - i < sha->lanes ? count - i : sha->lanes;
        if (some == 1)
            sha256(sha, messages[i].data, messages[i].size, messages[i].to);
        else if (sha->compress_lanes)
            hash_in_lanes(sha, &messages[i], some);
        else
            hash_two(sha, &messages[i], &messages[i + 1]);
    }
}

static void hash_jobs_in_lanes(const Sha256 *sha, Sha256Job *jobs, size_t count, size_t blocks)
{
    uint32_t state[8][SHA256_LANES], own[8];
    const uint8_t *at[SHA256_LANES];
    start_lanes(state);
    for (size_t lane = 0; lane < SHA256_LANES; lane++) {
        at[lane] = jobs[lane < count ? lane : 0].message;
        if (lane < count)
            pad(jobs[lane].message, jobs[lane].size, jobs[lane].size);
    }
    sha->compress_lanes(state, at, blocks);
    for (size_t lane = 0; lane < count; lane++) {
        take_lane(state, lane, own);
        write_hash(own, jobs[lane].to);
    }
}

void sha256_jobs(const Sha256 *sha, Sha256Job *jobs, size_t count, size_t blocks)
{
    uint32_t a[8], b[8];
    if (count == 1) {
        sha256(sha, jobs->message, jobs->size, jobs->to);
        return;
    }
    if (sha->compress_lanes) {
        hash_jobs_in_lanes(sha, jobs, count, blocks);
        return;
    }
    pad(jobs[0].message, jobs[0].size, jobs[0].size);
    pad(jobs[1].message, jobs[1].size, jobs[1].size);
    memcpy(a, START, sizeof a);
    memcpy(b, START, sizeof b);
    sha->compress_pair(a, jobs[0].message, b, jobs[1].message, blocks);
    write_hash(a, jobs[0].to);
    write_hash(b, jobs[1].to);
}
