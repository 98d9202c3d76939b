/* Finds accounts of a segment by address: 36 bytes each, account id and workchain, ascending. */
#include "rows.h"

static void write_id(uint8_t *id, const char *account, int64_t workchain)
{
    uint32_t biased = (uint32_t)(workchain + (1LL << 31));
    memcpy(id, account, HASH_BYTES);
    for (int at = 0; at < 4; at++)
        id[HASH_BYTES + at] = (uint8_t)(biased >> (24 - 8 * at));
}

/* Return the number of an account, or -1. */
static int64_t find_number(const Source *source, const uint8_t *id)
{
    const Py_buffer *view = &source->arrays[ACCOUNT_ID];
    const uint8_t *ids = view->buf;
    int64_t low = 0, high = view->len / ACCOUNT_ID_BYTES;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = memcmp(ids + middle * ACCOUNT_ID_BYTES, id, ACCOUNT_ID_BYTES);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

bool find_account(const Source *source, PyObject *address, int64_t *number)
{
    uint8_t id[ACCOUNT_ID_BYTES];
    int workchain;
    const char *account;
    Py_ssize_t size;
    if (!PyTuple_Check(address)) {
        PyErr_SetString(PyExc_TypeError, "an account must be workchain and 32 bytes");
        return false;
    }
    if (!PyArg_ParseTuple(address, "iy#:account", &workchain, &account, &size))
        return false;
    if (size != HASH_BYTES) {
        PyErr_SetString(PyExc_ValueError, "an account id must have 32 bytes");
        return false;
    }
    write_id(id, account, workchain);
    *number = find_number(source, id);
    return true;
}
