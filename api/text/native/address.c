/* User-friendly addresses (TEP-2): tag, workchain, account and CRC-16, in base64url. */
#include "address.h"

#include <string.h>

enum { CHECKED_BYTES = 34, PACKED_BYTES = 36 };

/* CRC-16/XMODEM, polynomial 0x1021, four bits at a time. */
static uint16_t crc16(const uint8_t *data, size_t size)
{
    static const uint16_t table[16] = {
        0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
        0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
    };
    uint16_t crc = 0;
    for (size_t at = 0; at < size; at++) {
        crc = (uint16_t)(crc << 4 ^ table[(crc >> 12) ^ (data[at] >> 4)]);
        crc = (uint16_t)(crc << 4 ^ table[(crc >> 12) ^ (data[at] & 15)]);
    }
    return crc;
}

void format_friendly(char *to, int tag, int workchain, const uint8_t *account)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t packed[PACKED_BYTES] = {(uint8_t)tag, (uint8_t)workchain};
    memcpy(packed + 2, account, ACCOUNT_BYTES);
    uint16_t crc = crc16(packed, CHECKED_BYTES);
    packed[CHECKED_BYTES] = (uint8_t)(crc >> 8);
    packed[CHECKED_BYTES + 1] = (uint8_t)crc;
    for (int at = 0; at < PACKED_BYTES; at += 3) {
        uint32_t word = (uint32_t)packed[at] << 16 | (uint32_t)packed[at + 1] << 8 | packed[at + 2];
        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = digits[word >> 6 & 63];
        *to++ = digits[word & 63];
    }
}

PyObject *write_friendly(PyObject *self, PyObject *args)
{
    (void)self;
    int tag, workchain;
    const char *account;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "iiy#:write_friendly", &tag, &workchain, &account, &size))
        return NULL;
    if (size != ACCOUNT_BYTES || tag < 0 || tag > UINT8_MAX || !has_friendly(workchain))
        return PyErr_Format(PyExc_ValueError, "this address has no friendly form");
    char text[FRIENDLY_CHARS];
    format_friendly(text, tag, workchain, (const uint8_t *)account);
    return PyUnicode_FromStringAndSize(text, FRIENDLY_CHARS);
}
