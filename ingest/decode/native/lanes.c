/* Computes SHA-256 of eight messages at once, with a vector register per word: for processors with
   wide registers but without SHA instructions. */
#include "sha256.h"

#if SHA256_X86_64

typedef uint32_t Word __attribute__((vector_size(4 * SHA256_LANES)));

#define INLINE __attribute__((target("avx2"), always_inline)) static inline
#include "rounds.h"

/* Load the words of one block of each message, and advance each message to its next block. */
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

/* The compiler finds the rotate instructions, and those that combine three words at once. */
__attribute__((target("avx2,avx512vl"))) void
sha256_lanes_avx512(uint32_t state[8][SHA256_LANES], const uint8_t *at[SHA256_LANES], size_t count)
{
    compress_lanes(state, at, count);
}

#endif
