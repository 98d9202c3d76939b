/* Bags of cells, names of opcodes, and decoded bodies, which are cached by the hash of the body. */
#include "module.h"
#include "writer.h"

/* CRC-32C (Castagnoli), one byte at a time, with a table made at the start. */
#define POLYNOMIAL 0x82f63b78u
enum { BYTES = 256, CRC_BYTES = 4, FLAGS_AT = 4, HAS_CRC32C = 0x40 };

static uint32_t TABLE[BYTES];

void fill_crc32c(void)
{
    for (uint32_t byte = 0; byte < BYTES; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        TABLE[byte] = crc;
    }
}

static uint32_t crc32c(const uint8_t *data, size_t size)
{
    uint32_t crc = ~0u;
    for (size_t at = 0; at < size; at++)
        crc = crc >> 8 ^ TABLE[(crc ^ data[at]) & 0xff];
    return ~crc;
}

/* Return a bag of cells with its checksum flag set and the checksum (little-endian) appended, in
 * memory that PyMem_Free frees. */
static uint8_t *copy_closed(const uint8_t *bag, size_t size)
{
    if (size <= FLAGS_AT || size > PY_SSIZE_T_MAX - CRC_BYTES) {
        PyErr_Format(PyExc_ValueError, "%zu bytes are not a bag of cells", size);
        return NULL;
    }
    uint8_t *copy = PyMem_Malloc(size + CRC_BYTES);
    if (!copy) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(copy, bag, size);
    copy[FLAGS_AT] |= HAS_CRC32C;
    uint32_t crc = crc32c(copy, size);
    for (int at = 0; at < CRC_BYTES; at++)
        copy[size + (size_t)at] = (uint8_t)(crc >> 8 * at);
    return copy;
}

PyObject *add_crc32c(PyObject *self, PyObject *bag)
{
    (void)self;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bag, &data, &size) < 0)
        return NULL;
    uint8_t *closed = copy_closed((const uint8_t *)data, (size_t)size);
    PyObject *result =
        closed ? PyBytes_FromStringAndSize((const char *)closed, size + CRC_BYTES) : NULL;
    PyMem_Free(closed);
    return result;
}

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

int add_bag(Buffer *out, PyObject *value)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(value, &data, &size) < 0)
        return -1;
    const uint8_t *bag = (const uint8_t *)data;
    if (size > FLAGS_AT && bag[FLAGS_AT] & HAS_CRC32C)
        return buffer_add_base64(out, bag, (size_t)size);
    uint8_t *closed = copy_closed(bag, (size_t)size);
    int failed = closed ? buffer_add_base64(out, closed, (size_t)size + CRC_BYTES) : -1;
    PyMem_Free(closed);
    return failed;
}

/* Return 1 if the opcode of a body is not in the set `known`; 0 if it may be, or if there is no body;
 * -1 on error. */
static int is_unknown_body(PyObject *body, PyObject *known)
{
    char *data;
    Py_ssize_t size;
    if (body == Py_None)
        return 0;
    if (PyBytes_AsStringAndSize(body, &data, &size) < 0)
        return -1;
    long long opcode = peek_opcode((const uint8_t *)data, (size_t)size);
    if (opcode < 0)
        return 0;
    PyObject *number = PyLong_FromLongLong(opcode);
    int is_known = number ? PySet_Contains(known, number) : -1;
    Py_XDECREF(number);
    return is_known < 0 ? -1 : !is_known;
}

int equals_text(Field *field, PyObject *row)
{
    PyObject *beside = read_column(row, &field->beside, 0);
    return beside ? PyObject_RichCompareBool(beside, field->equals, Py_EQ) : -1;
}

enum { NAME, CONTENT, BODY_BYTES, WRITTEN };

/* Return the cached result for a body with the same hash, bytes and kind (new reference), or NULL,
 * with or without an error set. */
static PyObject *find_written(const Field *field, PyObject *key, PyObject *bag, int may_follow)
{
    PyObject *written = PyDict_GetItemWithError(field->kept[may_follow], key);
    if (!written || !PyTuple_Check(written) || PyTuple_Size(written) != WRITTEN)
        return NULL;
    int same = PyObject_RichCompareBool(PyTuple_GetItem(written, BODY_BYTES), bag, Py_EQ);
    return same > 0 ? Py_NewRef(written) : NULL;
}

/* Return a hash, or that which a number stands for, as a new reference. */
static PyObject *read_hash(const Writer *writer, PyObject *value)
{
    const uint8_t *data;
    size_t size;
    if (!value || !PyLong_CheckExact(value))
        return Py_XNewRef(value);
    int failed = find_bytes(writer, value, &data, &size);
    return failed ? NULL : PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
}

/* Add the opcode name of a decoded body; keep its JSON for the body. */
static int take_written(Writer *writer, PyObject *written)
{
    if (!PyTuple_Check(written) || PyTuple_Size(written) != WRITTEN) {
        PyErr_SetString(PyExc_TypeError, "a written body is a tuple (name, content, body)");
        return -1;
    }
    writer->body = Py_NewRef(PyTuple_GetItem(written, CONTENT));
    if (!PyBytes_Check(writer->body)) {
        PyErr_SetString(PyExc_TypeError, "a body is written as bytes");
        return -1;
    }
    return buffer_add_json(&writer->out, PyTuple_GetItem(written, NAME));
}

int add_opcode_name(Writer *writer, Field *field, PyObject *row)
{
    Py_CLEAR(writer->body);
    int may_follow = equals_text(field, row);
    PyObject *bag = may_follow < 0 ? NULL : read_column(row, field->columns, 0);
    if (!bag)
        return -1;
    int is_unknown = may_follow ? 0 : is_unknown_body(bag, field->known);
    if (is_unknown)
        return is_unknown < 0 ? -1 : buffer_add(&writer->out, "null", 4);
    PyObject *key = read_hash(writer, read_column(row, &field->body_hash, 0));
    PyObject *written = key ? find_written(field, key, bag, may_follow) : NULL;
    if (!written && !PyErr_Occurred())
        written = PyObject_CallFunctionObjArgs(field->decode, key, bag,
                                               may_follow ? Py_True : Py_False, NULL);
    int failed = written ? take_written(writer, written) : -1;
    Py_XDECREF(written);
    Py_XDECREF(key);
    return failed;
}
