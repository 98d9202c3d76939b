/* Packs and digests cells for ingest/source/node/celldb.py and bag.py. */
#include "packed.h"

#define HASHES_BIT 0x10
#define STORED_BYTES 34
#define DEPTH_BYTES 2
#define REFCOUNT_BYTES 4
#define START_BYTES 8
#define HANDLE_BYTES 8
#define DIGEST_BYTES 34
#define MAX_PACKED (2 + 128 + MAX_REFS * HASH_BYTES)
#define MAX_SHOWN (MAX_PACKED + MAX_REFS * DEPTH_BYTES)

static unsigned count_levels(unsigned mask)
{
    return 1 + (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1);
}

static uint64_t load_start(const Py_buffer *starts, uint64_t cell)
{
    uint64_t start;
    memcpy(&start, (const uint8_t *)starts->buf + cell * START_BYTES, sizeof start);
    return start;
}

/* Get the bytes of an item of a list. */
static bool get_bytes(PyObject *list, Py_ssize_t at, const uint8_t **data, size_t *size)
{
    PyObject *item = PyList_GetItem(list, at);
    char *bytes;
    Py_ssize_t length;
    if (!item || PyBytes_AsStringAndSize(item, &bytes, &length) != 0)
        return false;
    *data = (const uint8_t *)bytes;
    *size = (size_t)length;
    return true;
}

/* Pack a record of celldb: refcount, d1, d2, data, references, and pending changes of the count,
   four bytes each. Return 0 if it is not a complete cell whose hash is its key. */
static size_t pack_record(const uint8_t *key, const uint8_t *data, size_t size,
                          uint8_t to[MAX_PACKED])
{
    static const uint8_t compressed[REFCOUNT_BYTES] = {0xFF, 0xFF, 0xFF, 0xFF};
    uint8_t shown[MAX_SHOWN];
    if (size < REFCOUNT_BYTES + 2 || memcmp(data, compressed, REFCOUNT_BYTES) == 0)
        return 0;
    unsigned d1 = data[REFCOUNT_BYTES], d2 = data[REFCOUNT_BYTES + 1], refs = d1 & 7;
    size_t head = 2 + (d2 + 1u) / 2, at = REFCOUNT_BYTES + head;
    if (refs > MAX_REFS || d1 & HASHES_BIT || at > size)
        return 0;
    memcpy(to, data + REFCOUNT_BYTES, head);
    memcpy(shown, to, head);
    for (unsigned i = 0; i < refs; i++) {
        unsigned levels = at < size && data[at] <= 7 ? count_levels(data[at]) : 0;
        size_t end = at + 1 + levels * (HASH_BYTES + DEPTH_BYTES);
        if (!levels || end > size)
            return 0;
        memcpy(to + head + i * HASH_BYTES, data + at + 1 + (levels - 1) * HASH_BYTES, HASH_BYTES);
        memcpy(shown + head + i * DEPTH_BYTES, data + end - DEPTH_BYTES, DEPTH_BYTES);
        at = end;
    }
    if ((size - at) % REFCOUNT_BYTES)
        return 0;
    if (!(d1 >> 5)) { /* cells with a level have several hashes */
        Hash hash;
        memcpy(shown + head + refs * DEPTH_BYTES, to + head, refs * HASH_BYTES);
        sha256(shown, head + refs * (DEPTH_BYTES + HASH_BYTES), &hash);
        if (memcmp(hash.bytes, key, HASH_BYTES) != 0)
            return 0;
    }
    return head + refs * HASH_BYTES;
}

PyObject *pack_records(PyObject *args)
{
    PyObject *keys, *values;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &keys, &PyList_Type, &values))
        return NULL;
    Py_ssize_t count = PyList_Size(keys);
    if (PyList_Size(values) != count) {
        PyErr_SetString(PyExc_ValueError, "a value for each key");
        return NULL;
    }
    PyObject *found = PyList_New(count);
    for (Py_ssize_t i = 0; found && i < count; i++) {
        const uint8_t *key, *data = NULL;
        size_t key_size, size = 0;
        uint8_t packed[MAX_PACKED];
        if (!get_bytes(keys, i, &key, &key_size) ||
            (PyList_GetItem(values, i) != Py_None && !get_bytes(values, i, &data, &size))) {
            Py_CLEAR(found);
            break;
        }
        size = data && key_size == HASH_BYTES ? pack_record(key, data, size, packed) : 0;
        if (!size) {
            Py_DECREF(found);
            Py_RETURN_NONE;
        }
        PyObject *cell = PyBytes_FromStringAndSize((const char *)packed, (Py_ssize_t)size);
        if (!cell || PyList_SetItem(found, i, cell) != 0)
            Py_CLEAR(found);
    }
    return found;
}

/* Append the children of a packed cell that are not known to `found`, and add them to `known`. */
static bool add_below(const uint8_t *data, size_t size, unsigned width, PyObject *known,
                      PyObject *found)
{
    for (unsigned refs = data[0] & 7; refs-- > 0; size -= width) {
        PyObject *handle =
            PyBytes_FromStringAndSize((const char *)data + size - width, (Py_ssize_t)width);
        int is_known = handle ? PySet_Contains(known, handle) : -1;
        bool done = is_known == 1 || (is_known == 0 && PySet_Add(known, handle) == 0 &&
                                      PyList_Append(found, handle) == 0);
        Py_XDECREF(handle);
        if (!done)
            return false;
    }
    return true;
}

PyObject *list_below(PyObject *args)
{
    PyObject *packed, *known;
    unsigned width;
    if (!PyArg_ParseTuple(args, "O!IO!", &PyList_Type, &packed, &width, &PySet_Type, &known))
        return NULL;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found && i < PyList_Size(packed); i++) {
        const uint8_t *data;
        size_t size;
        if (!get_bytes(packed, i, &data, &size)) {
            Py_CLEAR(found);
        } else if (size < 2 || size < 2 + (data[1] + 1u) / 2 + (data[0] & 7) * (size_t)width) {
            PyErr_SetString(PyExc_ValueError, "a packed cell is too short");
            Py_CLEAR(found);
        } else if (!add_below(data, size, width, known, found)) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* Measure a cell of a bag: its head and data without stored hashes, and where they begin. */
static bool measure_cell(const uint8_t *data, uint64_t at, uint64_t end, unsigned ref_bytes,
                         uint64_t *body, uint64_t *next)
{
    if (end < 2 || at > end - 2 || (data[at] & 7) > MAX_REFS)
        return false;
    unsigned d1 = data[at];
    *body = at + 2 + (d1 & HASHES_BIT ? count_levels(d1 >> 5) * STORED_BYTES : 0);
    *next = *body + (data[at + 1] + 1u) / 2 + (d1 & 7) * ref_bytes;
    return *next <= end;
}

PyObject *find_starts(PyObject *args)
{
    Py_buffer data, starts;
    unsigned long long first, end;
    unsigned ref_bytes;
    if (!PyArg_ParseTuple(args, "y*KKIw*", &data, &first, &end, &ref_bytes, &starts))
        return NULL;
    uint64_t at = first, body, count = (uint64_t)starts.len / START_BYTES, cell = 0;
    Py_BEGIN_ALLOW_THREADS
    for (; end <= (uint64_t)data.len && cell < count; cell++) {
        uint64_t start = at;
        if (!measure_cell(data.buf, at, end, ref_bytes, &body, &at)) {
            at = start;
            break;
        }
        memcpy((uint8_t *)starts.buf + cell * START_BYTES, &start, sizeof start);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    PyBuffer_Release(&starts);
    return Py_BuildValue("KK", (unsigned long long)cell, (unsigned long long)at);
}

/* A bag with known cell offsets. */
typedef struct {
    Py_buffer data, starts;
    unsigned ref_bytes;
    uint64_t count;
} Bag;

/* Pack a cell with a number per reference, which must point forward. Return 0 if it is damaged. */
static size_t pack_cell(const Bag *bag, uint64_t cell, uint8_t *to, uint64_t refs[MAX_REFS])
{
    const uint8_t *data = bag->data.buf;
    uint64_t at = load_start(&bag->starts, cell), body, next;
    if (!measure_cell(data, at, (uint64_t)bag->data.len, bag->ref_bytes, &body, &next))
        return 0;
    unsigned size = (data[at + 1] + 1u) / 2, count = data[at] & 7;
    to[0] = (uint8_t)(data[at] & ~HASHES_BIT);
    to[1] = data[at + 1];
    memcpy(to + 2, data + body, size);
    for (unsigned i = 0; i < count; i++) {
        refs[i] = load_be(data + body + size + i * bag->ref_bytes, bag->ref_bytes);
        if (refs[i] <= cell || refs[i] >= bag->count)
            return 0;
    }
    return 2 + size;
}

/* Compute hash and depth of an ordinary cell of level 0; false for any other. */
static bool digest_cell(const Bag *bag, uint8_t *digests, uint64_t cell)
{
    uint8_t shown[MAX_SHOWN];
    uint64_t refs[MAX_REFS];
    size_t size = pack_cell(bag, cell, shown, refs);
    unsigned count = size ? shown[0] & 7 : 0, depth = 0;
    if (!size || shown[0] >> 5 || (shown[0] & EXOTIC_BIT && count))
        return false;
    uint8_t *hashes = shown + size + count * DEPTH_BYTES;
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *below = digests + refs[i] * DIGEST_BYTES;
        unsigned kid_depth = (unsigned)load_be(below + HASH_BYTES, DEPTH_BYTES);
        memcpy(hashes + i * HASH_BYTES, below, HASH_BYTES);
        memcpy(shown + size + i * DEPTH_BYTES, below + HASH_BYTES, DEPTH_BYTES);
        if (kid_depth >= depth)
            depth = kid_depth + 1;
    }
    Hash hash;
    sha256(shown, size + count * (DEPTH_BYTES + HASH_BYTES), &hash);
    memcpy(digests + cell * DIGEST_BYTES, hash.bytes, HASH_BYTES);
    store_be(digests + cell * DIGEST_BYTES + HASH_BYTES, depth, DEPTH_BYTES);
    return depth <= MAX_DEPTH;
}

PyObject *digest_cells(PyObject *args)
{
    Bag bag;
    Py_buffer digests;
    unsigned long long before;
    if (!PyArg_ParseTuple(args, "y*y*Iw*K", &bag.data, &bag.starts, &bag.ref_bytes, &digests,
                          &before))
        return NULL;
    bag.count = (uint64_t)bag.starts.len / START_BYTES;
    uint64_t cell = before;
    Py_BEGIN_ALLOW_THREADS
    if (before <= bag.count && (uint64_t)digests.len >= bag.count * DIGEST_BYTES)
        while (cell && digest_cell(&bag, digests.buf, cell - 1))
            cell--;
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bag.data);
    PyBuffer_Release(&bag.starts);
    PyBuffer_Release(&digests);
    return PyLong_FromUnsignedLongLong(cell);
}

/* Return the packed cell of a handle, None if it is damaged. */
static PyObject *make_cell(const Bag *bag, PyObject *handles, Py_ssize_t at)
{
    const uint8_t *handle;
    size_t size;
    uint8_t packed[MAX_PACKED];
    uint64_t refs[MAX_REFS];
    if (!get_bytes(handles, at, &handle, &size))
        return NULL;
    uint64_t cell = size == HANDLE_BYTES ? load_be64(handle) : bag->count;
    size = cell < bag->count ? pack_cell(bag, cell, packed, refs) : 0;
    if (!size)
        Py_RETURN_NONE;
    for (unsigned i = 0; i < (packed[0] & 7u); i++, size += HANDLE_BYTES)
        store_be(packed + size, refs[i], HANDLE_BYTES);
    return PyBytes_FromStringAndSize((const char *)packed, (Py_ssize_t)size);
}

PyObject *read_cells(PyObject *args)
{
    Bag bag;
    PyObject *handles;
    if (!PyArg_ParseTuple(args, "y*y*IO!", &bag.data, &bag.starts, &bag.ref_bytes, &PyList_Type,
                          &handles))
        return NULL;
    bag.count = (uint64_t)bag.starts.len / START_BYTES;
    PyObject *found = PyList_New(PyList_Size(handles));
    for (Py_ssize_t i = 0; found && i < PyList_Size(handles); i++) {
        PyObject *cell = make_cell(&bag, handles, i);
        if (!cell || PyList_SetItem(found, i, cell) != 0)
            Py_CLEAR(found);
    }
    PyBuffer_Release(&bag.data);
    PyBuffer_Release(&bag.starts);
    return found;
}

PackedCell *take_packed(PyObject *keys, PyObject *values, unsigned width)
{
    Py_ssize_t count = PyTuple_Size(keys);
    PackedCell *cells = calloc((size_t)count + 1, sizeof *cells);
    bool is_sound = cells && count == PyTuple_Size(values);
    for (Py_ssize_t i = 0; is_sound && i < count; i++) {
        char *handle, *data;
        Py_ssize_t handle_size, size;
        is_sound =
            PyBytes_AsStringAndSize(PyTuple_GetItem(keys, i), &handle, &handle_size) == 0 &&
            PyBytes_AsStringAndSize(PyTuple_GetItem(values, i), &data, &size) == 0 &&
            handle_size == (Py_ssize_t)width;
        if (is_sound)
            cells[i] = (PackedCell){(uint8_t *)handle, (uint8_t *)data, (size_t)size};
    }
    if (is_sound)
        return cells;
    free(cells);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "a packed cell for each handle");
    return NULL;
}
