/* SHA-256 of eight messages at once, a vector register for each word of the eight: for processors
   that have wide registers, but no instructions for the hash itself. */
#include "sha256.h"

#if defined(__x86_64__) && defined(__GNUC__)

#define WORDS 16
#define ROUNDS 64

typedef uint32_t Lanes __attribute__((vector_size(4 * SHA256_LANES)));

#define ROTATE(word, bits) ((word) >> (bits) | (word) << (32 - (bits)))

/* The words of a block of each message; each message moves on to its next block. */
__attribute__((target("avx2"), always_inline)) static inline void
load_blocks(Lanes to[WORDS], const uint8_t *at[SHA256_LANES])
{
    uint32_t words[WORDS][SHA256_LANES];
    for (unsigned lane = 0; lane < SHA256_LANES; lane++) {
        for (unsigned i = 0; i < WORDS; i++)
            words[i][lane] = load_be32(at[lane] + 4 * i);
        at[lane] += SHA256_BLOCK_BYTES;
    }
    memcpy(to, words, sizeof words);
}

__attribute__((target("avx2"), always_inline)) static inline void
compress_lanes(uint32_t state[8][SHA256_LANES], const uint8_t *at[SHA256_LANES], size_t count)
{
    Lanes s[8], w[WORDS];
    memcpy(s, state, sizeof s);
    for (; count; count--) {
        load_blocks(w, at);
        Lanes a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
#pragma GCC unroll 64
        for (unsigned i = 0; i < ROUNDS; i++) {
            if (i >= WORDS) {
                Lanes x = w[(i + 1) % WORDS], y = w[(i + 14) % WORDS];
                w[i % WORDS] += w[(i + 9) % WORDS] + (ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3) +
                                (ROTATE(y, 17) ^ ROTATE(y, 19) ^ y >> 10);
            }
            Lanes one = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) +
                        (g ^ (e & (f ^ g))) + SHA256_ROUND[i] + w[i % WORDS];
            Lanes two = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) | (c & (a | b)));
            h = g;
            g = f;
            f = e;
            e = d + one;
            d = c;
            c = b;
            b = a;
            a = one + two;
        }
        const Lanes sums[8] = {a, b, c, d, e, f, g, h};
        for (unsigned i = 0; i < 8; i++)
            s[i] += sums[i];
    }
    memcpy(state, s, sizeof s);
}

__attribute__((target("avx2"))) void
sha256_lanes_avx2(uint32_t state[8][SHA256_LANES], const uint8_t *at[SHA256_LANES], size_t count)
{
    compress_lanes(state, at, count);
}

/* The compiler finds the instructions that rotate, and those that join three words at once. */
__attribute__((target("avx2,avx512vl"))) void
sha256_lanes_avx512(uint32_t state[8][SHA256_LANES], const uint8_t *at[SHA256_LANES], size_t count)
{
    compress_lanes(state, at, count);
}

#endif
