/* User-friendly addresses, and the address book: raw and friendly address, domain and interfaces of
 * each account. */
#include "buffer.h"
#include "module.h"

enum { ACCOUNT_BYTES = 32, CHECKED_BYTES = 34, PACKED_BYTES = 36, FRIENDLY_CHARS = 48 };

/* Whether a workchain fits in the 8 bits of a user-friendly address. */
static int has_friendly(long long workchain)
{
    return workchain >= INT8_MIN && workchain <= INT8_MAX;
}

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

/* Write a user-friendly address (TEP-2): tag, workchain, account and CRC-16, in base64url. */
static void format_friendly(char *to, int tag, int workchain, const uint8_t *account)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t packed[PACKED_BYTES] = {(uint8_t)tag, (uint8_t)workchain};
    memcpy(packed + 2, account, ACCOUNT_BYTES);
    uint16_t crc = crc16(packed, CHECKED_BYTES);
    packed[CHECKED_BYTES] = (uint8_t)(crc >> 8);
    packed[CHECKED_BYTES + 1] = (uint8_t)crc;
    write_base64(to, packed, PACKED_BYTES, digits);
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

static int add_literal(Buffer *out, const char *text)
{
    return buffer_add(out, text, strlen(text));
}

static int add_address(Buffer *out, long long workchain, const uint8_t *account, int tag)
{
    if (add_literal(out, "\"") < 0 || buffer_add_number(out, workchain) < 0 ||
        add_literal(out, ":") < 0 || buffer_add_hex(out, account, ACCOUNT_BYTES) < 0 ||
        add_literal(out, "\":{\"user_friendly\":") < 0)
        return -1;
    if (!has_friendly(workchain))
        return add_literal(out, "null");
    char text[FRIENDLY_CHARS];
    format_friendly(text, tag, (int)workchain, account);
    if (add_literal(out, "\"") < 0 || buffer_add(out, text, FRIENDLY_CHARS) < 0)
        return -1;
    return add_literal(out, "\"");
}

/* Write one row of the address book. */
static int add_row(Buffer *out, PyObject *pair, PyObject *facts, PyObject *domains)
{
    long long workchain;
    const char *account;
    Py_ssize_t size;
    int tag;
    PyObject *interfaces;
    if (!PyArg_ParseTuple(pair, "Ly#:account", &workchain, &account, &size) ||
        !PyArg_ParseTuple(facts, "iO:facts", &tag, &interfaces))
        return -1;
    if (size != ACCOUNT_BYTES) {
        PyErr_Format(PyExc_ValueError, "an account id has %d bytes, not %zd", ACCOUNT_BYTES, size);
        return -1;
    }
    PyObject *domain = PyDict_GetItemWithError(domains, pair);
    if (!domain && PyErr_Occurred())
        return -1;
    if (add_address(out, workchain, (const uint8_t *)account, tag) < 0 ||
        add_literal(out, ",\"domain\":") < 0)
        return -1;
    if ((domain ? buffer_add_json(out, domain) : add_literal(out, "null")) < 0 ||
        add_literal(out, ",\"interfaces\":") < 0 || buffer_add_json(out, interfaces) < 0)
        return -1;
    return add_literal(out, "}");
}

static int add_rows(Buffer *out, PyObject *pairs, PyObject *facts, PyObject *domains)
{
    for (Py_ssize_t at = 0; at < PyList_Size(pairs); at++) {
        PyObject *pair = PyList_GetItem(pairs, at), *own = PyList_GetItem(facts, at);
        if (!pair || !own)
            return -1;
        if (!PyTuple_Check(pair) || !PyTuple_Check(own)) {
            PyErr_SetString(PyExc_TypeError, "accounts and their facts are pairs");
            return -1;
        }
        if ((at && add_literal(out, ",") < 0) || add_row(out, pair, own, domains) < 0)
            return -1;
    }
    return 0;
}

PyObject *write_book(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *pairs, *facts, *domains, *text = NULL;
    if (!PyArg_ParseTuple(args, "O!O!O!:write_book", &PyList_Type, &pairs, &PyList_Type, &facts,
                          &PyDict_Type, &domains))
        return NULL;
    Buffer out = {0};
    if (add_literal(&out, "{") == 0 && add_rows(&out, pairs, facts, domains) == 0 &&
        add_literal(&out, "}") == 0)
        text = PyBytes_FromStringAndSize(out.data, (Py_ssize_t)out.size);
    buffer_free(&out);
    return text;
}
