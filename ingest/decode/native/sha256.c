#include "sha256.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define BLOCK_BYTES 64
#define LENGTH_BYTES sizeof(uint64_t)
#define ROTATE(word, bits) ((word) >> (bits) | (word) << (32 - (bits)))

static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* Add a block to the state. */
static void compress_plain(uint32_t s[8], const uint8_t *block)
{
    uint32_t w[16], a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (unsigned i = 0; i < 16; i++)
        w[i] = load_be32(block + 4 * i);
#pragma GCC unroll 64
    for (unsigned i = 0; i < 64; i++) {
        if (i >= 16) {
            uint32_t x = w[(i + 1) % 16], y = w[(i + 14) % 16];
            w[i % 16] += w[(i + 9) % 16] + (ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3) +
                         (ROTATE(y, 17) ^ ROTATE(y, 19) ^ y >> 10);
        }
        uint32_t one = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + (g ^ (e & (f ^ g))) +
                       ROUND[i] + w[i % 16];
        uint32_t two = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) | (c & (a | b)));
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
        s[i] += sums[i];
}

/* Set once, when the extension is loaded. */
static void (*compress)(uint32_t state[8], const uint8_t *block) = compress_plain;

#if defined(__x86_64__) && defined(__GNUC__)

/* The instructions keep the state in two registers, ABEF and CDGH, and run two rounds each. */
__attribute__((target("sha,ssse3,sse4.1"))) static void compress_ni(uint32_t state[8],
                                                                    const uint8_t *block)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const void *)state), 0xB1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const void *)(state + 4)), 0x1B);
    const __m128i first_abef = _mm_alignr_epi8(low, high, 8);
    const __m128i first_cdgh = _mm_blend_epi16(high, low, 0xF0);
    __m128i words[4], abef = first_abef, cdgh = first_cdgh;
    for (unsigned i = 0; i < 4; i++)
        words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(block + 16 * i)), swap);
#pragma GCC unroll 16
    for (unsigned group = 0; group < 16; group++) {
        __m128i now = words[group & 3];
        __m128i sum = _mm_add_epi32(now, _mm_loadu_si128((const void *)(ROUND + 4 * group)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
        if (group < 12) {
            __m128i last = words[(group + 3) & 3];
            __m128i next = _mm_sha256msg1_epu32(now, words[(group + 1) & 3]);
            next = _mm_add_epi32(next, _mm_alignr_epi8(last, words[(group + 2) & 3], 4));
            words[group & 3] = _mm_sha256msg2_epu32(next, last);
        }
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
    }
    low = _mm_shuffle_epi32(_mm_add_epi32(abef, first_abef), 0x1B);
    high = _mm_shuffle_epi32(_mm_add_epi32(cdgh, first_cdgh), 0xB1);
    _mm_storeu_si128((void *)state, _mm_blend_epi16(low, high, 0xF0));
    _mm_storeu_si128((void *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

void sha256_open(void)
{
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_SSSE3 && c & bit_SSE4_1 &&
        __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA)
        compress = compress_ni;
}

#else

void sha256_open(void)
{
}

#endif

void sha256(const uint8_t *data, size_t size, Hash *to)
{
    uint32_t state[8];
    uint8_t tail[2 * BLOCK_BYTES] = {0};
    size_t left = size % BLOCK_BYTES;
    memcpy(state, START, sizeof state);
    for (size_t at = 0; at < size - left; at += BLOCK_BYTES)
        compress(state, data + at);
    memcpy(tail, data + (size - left), left);
    tail[left] = 0x80;
    size_t end = left + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
    store_be(tail + end - LENGTH_BYTES, (uint64_t)size << 3, LENGTH_BYTES);
    for (size_t at = 0; at < end; at += BLOCK_BYTES)
        compress(state, tail + at);
    for (unsigned i = 0; i < 8; i++)
        store_be32(to->bytes + 4 * i, state[i]);
}
