#include "out.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LIMBS 32 /* a cell has 1023 bits */
#define LIMB_DIGITS 9
#define LIMB_BASE 1000000000u

static const char HEX[] = "0123456789ABCDEF";

void put(Out *out, const char *text, size_t size)
{
    if (out->is_muted)
        return;
    if (out->size + size > out->room) {
        size_t room = (out->size + size) * 2 + 1024;
        char *grown = realloc(out->text, room);
        if (!grown) {
            out->is_full = true;
            return;
        }
        out->text = grown;
        out->room = room;
    }
    memcpy(out->text + out->size, text, size);
    out->size += size;
}

uint64_t read_bits(Bits at, unsigned count)
{
    uint64_t value = 0;
    unsigned pos = at.pos;
    while (count) {
        unsigned left = 8 - (pos & 7);
        unsigned take = left < count ? left : count;
        unsigned byte = at.data[pos >> 3] & ((1u << left) - 1);
        value = value << take | byte >> (left - take);
        pos += take;
        count -= take;
    }
    return value;
}

void copy_bits(Bits at, unsigned count, uint8_t *target)
{
    for (unsigned done = 0; done < count; done += 8) {
        unsigned take = count - done < 8 ? count - done : 8;
        Bits from = {at.data, at.pos + done};
        *target++ = (uint8_t)(read_bits(from, take) << (8 - take));
    }
}

static void put_magnitude(Out *out, uint64_t number, bool is_negative)
{
    char digits[24];
    char *end = digits + sizeof digits, *start = end;
    *--start = '"';
    do
        *--start = (char)('0' + number % 10);
    while (number /= 10);
    if (is_negative)
        *--start = '-';
    *--start = '"';
    put(out, start, (size_t)(end - start));
}

void put_small(Out *out, uint64_t number)
{
    put_magnitude(out, number, false);
}

/* Print limbs of 32 bits, most significant first. */
static void put_limbs(Out *out, uint32_t *limbs, unsigned count, bool is_negative)
{
    char digits[MAX_LIMBS * 10 + 16];
    char *end = digits + sizeof digits, *start = end;
    unsigned first = 0;
    *--start = '"';
    while (first < count && !limbs[first])
        first++;
    while (first < count) {
        uint64_t rest = 0;
        for (unsigned i = first; i < count; i++) {
            rest = rest << 32 | limbs[i];
            limbs[i] = (uint32_t)(rest / LIMB_BASE);
            rest %= LIMB_BASE;
        }
        while (first < count && !limbs[first])
            first++;
        for (unsigned i = 0; i < LIMB_DIGITS && (first < count || rest); i++) {
            *--start = (char)('0' + rest % 10);
            rest /= 10;
        }
    }
    if (start[0] == '"')
        *--start = '0';
    if (is_negative)
        *--start = '-';
    *--start = '"';
    put(out, start, (size_t)(end - start));
}

void put_number(Out *out, Bits at, unsigned count, bool is_signed)
{
    if (out->is_muted)
        return;
    bool is_negative = is_signed && count && read_bits(at, 1);
    if (count <= 64) {
        uint64_t number = read_bits(at, count);
        if (is_negative) {
            uint64_t mask = count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
            number = (~number & mask) + 1;
        }
        put_magnitude(out, number, is_negative);
        return;
    }
    uint32_t limbs[MAX_LIMBS + 1] = {0};
    unsigned used = (count + 31) / 32;
    unsigned head = count - (used - 1) * 32;
    for (unsigned i = 0, pos = at.pos; i < used; i++) {
        unsigned take = i ? 32 : head;
        Bits from = {at.data, pos};
        limbs[i] = (uint32_t)read_bits(from, take);
        pos += take;
    }
    if (is_negative) {
        uint64_t carry = 1;
        limbs[0] |= head == 32 ? 0 : UINT32_MAX << head;
        for (unsigned i = used; i-- > 0;) {
            carry += (uint32_t)~limbs[i];
            limbs[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    put_limbs(out, limbs, used, is_negative);
}

void put_bits(Out *out, Bits at, unsigned count)
{
    if (out->is_muted)
        return;
    char digits[264];
    unsigned size = 0;
    digits[size++] = '"';
    unsigned done = 0;
    for (; done + 4 <= count; done += 4) {
        Bits from = {at.data, at.pos + done};
        digits[size++] = HEX[read_bits(from, 4)];
    }
    unsigned rest = count - done;
    if (rest) {
        Bits from = {at.data, at.pos + done};
        digits[size++] = HEX[(read_bits(from, rest) << 1 | 1) << (3 - rest)];
        digits[size++] = '_';
    }
    digits[size++] = '"';
    put(out, digits, size);
}

void put_hex(Out *out, const uint8_t *data, size_t size)
{
    if (out->is_muted)
        return;
    PUT(out, "\"");
    for (size_t i = 0; i < size; i++) {
        char digits[2] = {HEX[data[i] >> 4], HEX[data[i] & 15]};
        put(out, digits, 2);
    }
    PUT(out, "\"");
}

/* Return the length of the character at the start of `data`, or 0 if it is not UTF-8. */
static size_t measure_character(const uint8_t *data, size_t size)
{
    uint8_t head = data[0];
    if (head < 0x80)
        return 1;
    size_t length = head >= 0xF0 ? 4 : head >= 0xE0 ? 3 : 2;
    if (head < 0xC2 || head > 0xF4 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((data[i] & 0xC0) != 0x80)
            return 0;
    uint8_t next = data[1];
    bool is_wrong = (head == 0xE0 && next < 0xA0) || (head == 0xED && next > 0x9F) ||
                    (head == 0xF0 && next < 0x90) || (head == 0xF4 && next > 0x8F);
    return is_wrong ? 0 : length;
}

static void put_escaped(Out *out, uint8_t character)
{
    static const char SHORT[] = "btn\0fr";
    if (character == '"' || character == '\\') {
        char text[2] = {'\\', (char)character};
        put(out, text, 2);
    } else if (character >= 8 && character <= 13 && character != 11) {
        char text[2] = {'\\', SHORT[character - 8]};
        put(out, text, 2);
    } else {
        char text[6] = {'\\', 'u', '0', '0', (char)('0' + (character >> 4)),
                        "0123456789abcdef"[character & 15]};
        put(out, text, 6);
    }
}

bool put_utf8(Out *out, const uint8_t *data, size_t size)
{
    PUT(out, "\"");
    size_t plain = 0, at = 0;
    while (at < size) {
        size_t length = measure_character(data + at, size - at);
        if (!length)
            return false;
        if (data[at] < 0x20 || data[at] == '"' || data[at] == '\\') {
            put(out, (const char *)data + plain, at - plain);
            put_escaped(out, data[at]);
            plain = at + 1;
        }
        at += length;
    }
    put(out, (const char *)data + plain, size - plain);
    PUT(out, "\"");
    return true;
}

void put_base64(Out *out, const uint8_t *data, size_t size)
{
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (out->is_muted)
        return;
    PUT(out, "\"");
    for (size_t i = 0; i < size; i += 3) {
        uint32_t group = (uint32_t)data[i] << 16;
        if (i + 1 < size)
            group |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < size)
            group |= data[i + 2];
        char text[4] = {LETTERS[group >> 18], LETTERS[group >> 12 & 63],
                        i + 1 < size ? LETTERS[group >> 6 & 63] : '=',
                        i + 2 < size ? LETTERS[group & 63] : '='};
        put(out, text, 4);
    }
    PUT(out, "\"");
}
