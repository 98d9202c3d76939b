/* SHA-256 of eight messages at once, a vector register for each word of the eight: for processors
   that have wide registers, but no instructions for the hash itself. */
#include "sha256.h"

#if SHA256_X86_64

typedef uint32_t Word __attribute__((vector_size(4 * SHA256_LANES)));

#define INLINE __attribute__((target("avx2"), always_inline)) static inline
#include "rounds.h"

/* The words of a block of each message; each message moves on to its next block. */
INLINE void load_blocks(Word to[16], const uint8_t *at[SHA256_LANES])
{
    uint32_t words[16][SHA256_LANES];
    for (unsigned lane = 0; lane < SHA256_LANES; lane++) {
        for (unsigned i = 0; i < 16; i++)
            words[i][lane] = load_be32(at[lane] + 4 * i);
        at[lane] += SHA256_BLOCK_BYTES;
    }
    memcpy(to, words, sizeof words);
}

INLINE void compress_lanes(uint32_t state[8][SHA256_LANES], const uint8_t *at[SHA256_LANES],
                           size_t count)
{
    Word s[8], w[16];
    memcpy(s, state, sizeof s);
    for (; count; count--) {
        load_blocks(w, at);
        run_rounds(s, w);
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
