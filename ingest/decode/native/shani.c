/* Computes SHA-256 with the processor's SHA instructions, of one message or of two at once. */
#include "sha256.h"

#if SHA256_X86_64
#include <cpuid.h>
#include <immintrin.h>

/* The instructions keep the state in two registers, ABEF and CDGH. */
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

/* Run four rounds, and compute the message words of the group four groups later. */
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

__attribute__((target("sha,ssse3,sse4.1"))) void
sha256_compress_ni(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    State s = load_state(state);
    for (; count; count--, blocks += SHA256_BLOCK_BYTES) {
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

/* Process two messages at once: while one waits for an instruction, the other continues. */
__attribute__((target("sha,ssse3,sse4.1"))) void
sha256_compress_pair_ni(uint32_t left_state[8], const uint8_t *left, uint32_t right_state[8],
                        const uint8_t *right, size_t count)
{
    State a = load_state(left_state), b = load_state(right_state);
    for (; count; count--, left += SHA256_BLOCK_BYTES, right += SHA256_BLOCK_BYTES) {
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

bool sha256_can_ni(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

#endif
