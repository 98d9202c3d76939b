/* JSON text in a growing buffer, and the notations of numbers, bit strings and base64. */
#ifndef TONLAKE_BODY_OUT_H
#define TONLAKE_BODY_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *text;
    size_t size, room;
    bool is_full; /* out of memory: the text is incomplete */
    bool is_muted; /* values are checked but not written */
} Out;

/* Bits of a cell, starting at bit `pos` of `data`. */
typedef struct {
    const uint8_t *data;
    unsigned pos;
} Bits;

void put(Out *out, const char *text, size_t size);
#define PUT(out, literal) put(out, literal, sizeof(literal) - 1)

uint64_t read_bits(Bits at, unsigned count); /* at most 64 */
void copy_bits(Bits at, unsigned count, uint8_t *target); /* whole bytes, padded with zeroes */

void put_small(Out *out, uint64_t number);                         /* decimal, in quotes */
void put_number(Out *out, Bits at, unsigned count, bool is_signed); /* decimal, in quotes */
void put_bits(Out *out, Bits at, unsigned count);  /* uppercase hexadecimal, in quotes */
void put_hex(Out *out, const uint8_t *data, size_t size); /* the same for whole bytes */
bool put_utf8(Out *out, const uint8_t *data, size_t size); /* in quotes; false: not UTF-8 */
void put_base64(Out *out, const uint8_t *data, size_t size); /* in quotes */

#endif
