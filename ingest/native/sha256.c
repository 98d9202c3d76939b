#include "sha256.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define IS_X86_64 1
#include <cpuid.h>
#include <immintrin.h>
#endif

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

static inline uint32_t rotate(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static void compress_portable(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    for (; count; count--, blocks += BLOCK_BYTES) {
        uint32_t w[64];
        for (unsigned i = 0; i < 16; i++)
            w[i] = load_be32(blocks + 4 * i);
        for (unsigned i = 16; i < 64; i++) {
            uint32_t x = w[i - 15], y = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) +
                   (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10);
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (unsigned i = 0; i < 64; i++) {
            uint32_t one = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                           ((e & f) ^ (~e & g)) + SHA256_ROUND[i] + w[i];
            uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                           ((a & b) ^ (a & c) ^ (b & c));
            h = g;
            g = f;
            f = e;
            e = d + one;
            d = c;
            c = b;
            b = a;
            a = one + two;
        }
        const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
        for (unsigned i = 0; i < 8; i++)
            state[i] += sums[i];
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

#ifdef IS_X86_64

/* The instructions keep the state as two registers, ABEF and CDGH. */
typedef struct {
    __m128i abef, cdgh;
} State;

#define SHA_NI __attribute__((target("sha,ssse3,sse4.1"), always_inline)) static inline

SHA_NI State load_state(const uint32_t state[8])
{
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const void *)state), 0xB1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const void *)(state + 4)), 0x1B);
    return (State){_mm_alignr_epi8(low, high, 8), _mm_blend_epi16(high, low, 0xF0)};
}

SHA_NI void store_state(uint32_t state[8], State s)
{
    __m128i low = _mm_shuffle_epi32(s.abef, 0x1B);
    __m128i high = _mm_shuffle_epi32(s.cdgh, 0xB1);
    _mm_storeu_si128((void *)state, _mm_blend_epi16(low, high, 0xF0));
    _mm_storeu_si128((void *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

SHA_NI void load_block(__m128i words[4], const uint8_t *block)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    for (unsigned i = 0; i < 4; i++)
        words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(block + 16 * i)), swap);
}

/* Four rounds, and the message words of the group that comes four groups later. */
SHA_NI void run_group(State *s, __m128i words[4], unsigned group)
{
    __m128i now = words[group & 3];
    __m128i sum = _mm_add_epi32(now, _mm_loadu_si128((const void *)(SHA256_ROUND + 4 * group)));
    s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, sum);
    if (group < 12) {
        __m128i last = words[(group + 3) & 3];
        __m128i next = _mm_sha256msg1_epu32(now, words[(group + 1) & 3]);
        next = _mm_add_epi32(next, _mm_alignr_epi8(last, words[(group + 2) & 3], 4));
        words[group & 3] = _mm_sha256msg2_epu32(next, last);
    }
    s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(sum, 0x0E));
}

SHA_NI State add_states(State one, State two)
{
    return (State){_mm_add_epi32(one.abef, two.abef), _mm_add_epi32(one.cdgh, two.cdgh)};
}

__attribute__((target("sha,ssse3,sse4.1"))) static void
compress_sha_ni(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    State s = load_state(state);
    for (; count; count--, blocks += BLOCK_BYTES) {
        State before = s;
        __m128i words[4];
        load_block(words, blocks);
#pragma GCC unroll 16
        for (unsigned group = 0; group < 16; group++)
            run_group(&s, words, group);
        s = add_states(s, before);
    }
    store_state(state, s);
}

/* Two messages at once: while one waits for an instruction, the other goes on. */
__attribute__((target("sha,ssse3,sse4.1"))) static void
compress_pair_sha_ni(uint32_t left_state[8], const uint8_t *left, uint32_t right_state[8],
                     const uint8_t *right, size_t count)
{
    State a = load_state(left_state), b = load_state(right_state);
    for (; count; count--, left += BLOCK_BYTES, right += BLOCK_BYTES) {
        State a_before = a, b_before = b;
        __m128i a_words[4], b_words[4];
        load_block(a_words, left);
        load_block(b_words, right);
#pragma GCC unroll 16
        for (unsigned group = 0; group < 16; group++) {
            run_group(&a, a_words, group);
            run_group(&b, b_words, group);
        }
        a = add_states(a, a_before);
        b = add_states(b, b_before);
    }
    store_state(left_state, a);
    store_state(right_state, b);
}

static bool has_sha_ni(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

bool sha256_can(Sha256Way way)
{
    if (way == SHA256_NI)
        return has_sha_ni();
    if (way == SHA256_AVX512)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512vl");
    return way == SHA256_PORTABLE || __builtin_cpu_supports("avx2");
}

Sha256 sha256_choose(Sha256Way way)
{
    if (way == SHA256_NI)
        return (Sha256){compress_sha_ni, compress_pair_sha_ni, NULL, 2};
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

/* Pad what is left of a message in `tail`, which has room for it and for one block more; return the
   blocks it takes. Clearing a fixed number of bytes is quicker than clearing the right one. */
static inline size_t pad(uint8_t *tail, size_t left, size_t size)
{
    size_t blocks = sha256_blocks(left);
    memset(tail + left, 0, BLOCK_BYTES + LENGTH_BYTES);
    tail[left] = 0x80;
    store_be32(tail + blocks * BLOCK_BYTES - 8, (uint32_t)((uint64_t)size >> 29));
    store_be32(tail + blocks * BLOCK_BYTES - 4, (uint32_t)(size << 3));
    return blocks;
}

/* Compress what is left of a message behind its first `done` blocks. */
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

/* The largest comes first. What has come to its end goes on beside it, and is not looked at. */
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
        size_t whole = left ? message->size / BLOCK_BYTES : done; /* one alone gains nothing */
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
