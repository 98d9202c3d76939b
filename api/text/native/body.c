/* Detects message bodies whose opcode no scheme names, which are most. */
#include "body.h"

#include "crc32c.h"

static const uint8_t MAGIC[] = {0xb5, 0xee, 0x9c, 0x72};

enum { HAS_INDEX = 0x80, SIZE_MASK = 7, HEAD_BYTES = 6, SIMPLE_CELL = 4, OPCODE_BYTES = 4 };
enum { SIGNED_SIZE = 2 * (64 + OPCODE_BYTES) }; /* d2 of a signature and an opcode */

/* Return the first 32 bits of the root, read from the header of its bag of cells; -1 if the cells
 * must be parsed: the bag has an index, the root is not the first cell, or the root is exotic, has
 * less than 32 bits or room for a signature followed by a request. TL-B: serialized_boc#b5ee9c72. */
static long long peek_opcode(const uint8_t *bag, size_t size)
{
    if (size < HEAD_BYTES || memcmp(bag, MAGIC, sizeof MAGIC) || bag[FLAGS_AT] & HAS_INDEX)
        return -1;
    size_t width = bag[FLAGS_AT] & SIZE_MASK;
    size_t root_list = HEAD_BYTES + 3 * width + bag[5], start = root_list + width;
    if (start + 2 + OPCODE_BYTES > size)
        return -1;
    unsigned long long roots = 0, root = 0;
    for (size_t at = 0; at < width; at++) {
        roots = roots << 8 | bag[HEAD_BYTES + width + at];
        root = root << 8 | bag[root_list + at];
    }
    if (roots != 1 || root || bag[start] > SIMPLE_CELL || bag[start + 1] < 2 * OPCODE_BYTES ||
        bag[start + 1] >= SIGNED_SIZE)
        return -1;
    const uint8_t *opcode = bag + start + 2;
    return (long long)opcode[0] << 24 | opcode[1] << 16 | opcode[2] << 8 | opcode[3];
}

int add_bag(Buffer *out, const Value *value)
{
    const uint8_t *bag;
    size_t size;
    if (!find_held_bytes(value, &bag, &size))
        return -1;
    if (size > FLAGS_AT && bag[FLAGS_AT] & HAS_CRC32C)
        return buffer_add_base64(out, bag, size);
    uint8_t *closed = copy_closed(bag, size);
    int failed = closed ? buffer_add_base64(out, closed, size + CRC_BYTES) : -1;
    PyMem_Free(closed);
    return failed;
}

int is_unknown_body(const Value *body, PyObject *known)
{
    const uint8_t *bag;
    size_t size;
    if (body->form == IS_NONE)
        return 0;
    if (!find_held_bytes(body, &bag, &size))
        return -1;
    long long opcode = peek_opcode(bag, size);
    if (opcode < 0)
        return 0;
    PyObject *number = PyLong_FromLongLong(opcode);
    int is_known = number ? PySet_Contains(known, number) : -1;
    Py_XDECREF(number);
    return is_known < 0 ? -1 : !is_known;
}
