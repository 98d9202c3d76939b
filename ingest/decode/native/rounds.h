/* The 64 rounds of SHA-256 over a block. The including file defines `Word`, an integer or a vector
   with one integer per parallel message, and INLINE, with the target attributes. */
#define ROTATE(word, bits) ((word) >> (bits) | (word) << (32 - (bits)))

/* Add a block of 16 words to the state; the words are destroyed. */
INLINE void run_rounds(Word s[8], Word w[16])
{
    Word a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
#pragma GCC unroll 64
    for (unsigned i = 0; i < 64; i++) {
        if (i >= 16) {
            Word x = w[(i + 1) % 16], y = w[(i + 14) % 16];
            w[i % 16] += w[(i + 9) % 16] + (ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3) +
                         (ROTATE(y, 17) ^ ROTATE(y, 19) ^ y >> 10);
        }
        Word one = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + (g ^ (e & (f ^ g))) +
                   SHA256_ROUND[i] + w[i % 16];
        Word two = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) | (c & (a | b)));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    const Word sums[8] = {a, b, c, d, e, f, g, h};
    for (unsigned i = 0; i < 8; i++)
        s[i] += sums[i];
}
