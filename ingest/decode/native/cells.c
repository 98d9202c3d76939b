/* Bags of cells for Python, in the form of ingest/decode/cell/tree.py. */
#include "cells.h"

#include "slice.h"
#include "writer.h"

typedef PyObject *(*MakeItem)(const Tree *tree, uint32_t cell);

/* Return d1 (without the bit for stored hashes), d2 and data of a cell. */
static PyObject *make_head(const Tree *tree, uint32_t index)
{
    const Cell *cell = &tree->cells[index];
    uint8_t head[2 + (MAX_BITS + 7) / 8 + 1] = {cell->d1, cell->d2};
    memcpy(head + 2, cell->data, cell_bytes(cell));
    return PyBytes_FromStringAndSize((const char *)head, 2 + cell_bytes(cell));
}

static PyObject *make_links(const Tree *tree, uint32_t index)
{
    const Cell *cell = &tree->cells[index];
    unsigned count = cell_ref_count(cell);
    PyObject *links = PyTuple_New((Py_ssize_t)count);
    for (unsigned i = 0; links && i < count; i++) {
        PyObject *link = PyLong_FromUnsignedLong(cell->refs[i]);
        if (!link || PyTuple_SetItem(links, (Py_ssize_t)i, link) != 0)
            Py_CLEAR(links);
    }
    return links;
}

static PyObject *make_depth(const Tree *tree, uint32_t index)
{
    return PyLong_FromUnsignedLong(tree->heights[index]);
}

static PyObject *make_hash(const Hash *hash)
{
    return PyBytes_FromStringAndSize((const char *)hash->bytes, HASH_BYTES);
}

static PyObject *make_top(const Tree *tree, uint32_t index)
{
    return make_hash(tree_hash(tree, index, MAX_LEVEL));
}

static PyObject *make_bottom(const Tree *tree, uint32_t index)
{
    return make_hash(tree_hash(tree, index, 0));
}

static PyObject *make_shallow(const Tree *tree, uint32_t index)
{
    return PyLong_FromUnsignedLong(tree->depths[cell_digest(&tree->cells[index], 0)]);
}

/* Return a list with an item per cell. */
static PyObject *list_cells(const Tree *tree, MakeItem make)
{
    PyObject *items = PyList_New((Py_ssize_t)tree->count);
    for (uint32_t cell = 0; items && cell < tree->count; cell++) {
        PyObject *item = make(tree, cell);
        if (!item || PyList_SetItem(items, (Py_ssize_t)cell, item) != 0)
            Py_CLEAR(items);
    }
    return items;
}

/* Return the stored hashes and depths by cell; they precede the data. */
static PyObject *list_stored(const Tree *tree)
{
    const Heap *stored = &tree->memory.stored;
    PyObject *found = PyDict_New();
    for (size_t at = 0; found && at < stored->size; at += sizeof(uint32_t)) {
        uint32_t index;
        memcpy(&index, stored->data + at, sizeof index);
        const Cell *cell = &tree->cells[index];
        size_t size = cell_hash_count(cell) * (HASH_BYTES + 2);
        PyObject *key = PyLong_FromUnsignedLong(index);
        PyObject *value = PyBytes_FromStringAndSize((const char *)cell->data - size, (Py_ssize_t)size);
        if (!key || !value || PyDict_SetItem(found, key, value) != 0)
            Py_CLEAR(found);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return found;
}

static Status parse_bytes(Tree *tree, PyObject *data)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(data, &bytes, &size) != 0)
        return NO_MEMORY;
    return tree_parse(tree, (const uint8_t *)bytes, (size_t)size);
}

static bool has_right_crc(PyObject *data)
{
    return boc_has_right_crc((const uint8_t *)PyBytes_AsString(data), (size_t)PyBytes_Size(data));
}

/* Return three lists, each with an item per cell. */
static PyObject *pack_lists(const Tree *tree, const MakeItem makers[3])
{
    PyObject *lists[3] = {NULL};
    bool done = true;
    for (int i = 0; done && i < 3; i++)
        done = (lists[i] = list_cells(tree, makers[i])) != NULL;
    if (done)
        return Py_BuildValue("NNN", lists[0], lists[1], lists[2]);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(lists[i]);
    return NULL;
}

/* Return the result, None if the bag is declined, or NULL with an error set. */
static PyObject *end(Tree *tree, Status status, PyObject *result)
{
    tree_free(tree);
    if (status == NOT_MINE)
        Py_RETURN_NONE;
    if (status == NO_MEMORY && !PyErr_Occurred())
        PyErr_NoMemory();
    return result;
}

PyObject *parse_cells(PyObject *data, bool check_crc)
{
    static const MakeItem makers[3] = {make_head, make_links, make_depth};
    Tree tree = {0};
    Status status = parse_bytes(&tree, data);
    if (status == DONE && check_crc && !has_right_crc(data))
        status = NOT_MINE;
    PyObject *lists = status == DONE ? pack_lists(&tree, makers) : NULL;
    PyObject *stored = lists ? list_stored(&tree) : NULL;
    PyObject *result = stored ? Py_BuildValue("INN", tree.root, lists, stored) : NULL;
    if (!stored)
        Py_XDECREF(lists);
    return end(&tree, status, result);
}

PyObject *hash_cells(PyObject *data)
{
    static const MakeItem makers[3] = {make_top, make_bottom, make_shallow};
    Tree tree = {0};
    Status status = parse_bytes(&tree, data);
    if (status == DONE)
        status = tree_digest_whole(&tree);
    for (uint32_t cell = 0; status == DONE && cell < tree.count; cell++)
        if (cell_hash_count(&tree.cells[cell]) > 2)
            status = NOT_MINE;
    return end(&tree, status, status == DONE ? pack_lists(&tree, makers) : NULL);
}

/* The end of a cell: at most its last `bits` bits, and its references from `ref` on. */
typedef struct {
    unsigned cell, bits, ref;
} Rest;

/* Write the bag of a rest as a cell of its own; the cells below it are hashed. */
static Status write_rest(Writer *writer, Tree *tree, const Rest *rest, Heap *to)
{
    uint8_t data[128];
    uint32_t root = rest->cell;
    Slice slice = slice_open(tree, root);
    unsigned refs = cell_ref_count(&tree->cells[root]);
    Status status = DONE;
    if (rest->ref || rest->bits < tree->cells[root].bits) {
        if (rest->ref > refs || slice.failed)
            return NOT_MINE;
        if (rest->bits < slice.end)
            slice.pos = (uint16_t)(slice.end - rest->bits);
        unsigned bits = slice_bits_left(&slice);
        slice_tail(&slice, data);
        status = tree_append(tree, data, bits, slice.refs + rest->ref, refs - rest->ref, &root);
    }
    return status == DONE ? write_bag(writer, tree, root, to) : status;
}

/* Return the bags of rests, or NULL. */
static PyObject *list_bags(Writer *writer, Tree *tree, const Rest *rests, size_t count)
{
    Heap bag = {0};
    PyObject *bags = PyList_New((Py_ssize_t)count);
    Status status = DONE;
    for (size_t i = 0; bags && status == DONE && i < count; i++) {
        bag.size = 0;
        status = write_rest(writer, tree, &rests[i], &bag);
        PyObject *item = status == DONE ? PyBytes_FromStringAndSize((const char *)bag.data,
                                                                    (Py_ssize_t)bag.size)
                                        : NULL;
        if (!item || PyList_SetItem(bags, (Py_ssize_t)i, item) != 0)
            Py_CLEAR(bags);
    }
    heap_free(&bag);
    if (status == NOT_MINE)
        Py_RETURN_NONE;
    return status == NO_MEMORY ? PyErr_NoMemory() : bags;
}

PyObject *write_bags(PyObject *args)
{
    PyObject *data, *listed, *bags = NULL;
    Tree tree = {0};
    Writer writer = {0};
    Heap rests = {0}, roots = {0};
    Rest rest;
    if (!PyArg_ParseTuple(args, "SO!K", &data, &PyList_Type, &listed, &writer.seed))
        return NULL;
    Status status = parse_bytes(&tree, data);
    if (tree.memory.stored.size)
        status = NOT_MINE; /* the Python reference compares stored hashes */
    Py_ssize_t count = status == DONE ? PyList_Size(listed) : 0;
    for (Py_ssize_t i = 0; status == DONE && i < count; i++) {
        PyObject *item = PyList_GetItem(listed, i);
        if (!PyTuple_Check(item))
            PyErr_SetString(PyExc_TypeError, "a rest is a tuple");
        if (PyErr_Occurred() || !PyArg_ParseTuple(item, "III", &rest.cell, &rest.bits, &rest.ref))
            status = NO_MEMORY;
        else if (rest.cell >= tree.count)
            status = NOT_MINE;
        else if (!heap_append(&rests, &rest, sizeof rest) ||
                 !heap_append(&roots, &rest.cell, sizeof rest.cell))
            status = NO_MEMORY;
    }
    if (status == DONE)
        status = tree_digest(&tree, (const uint32_t *)roots.data, (size_t)count);
    if (status == DONE)
        status = writer_open(&writer, &tree);
    if (status == DONE)
        bags = list_bags(&writer, &tree, (const Rest *)rests.data, (size_t)count);
    writer_free(&writer);
    heap_free(&rests);
    heap_free(&roots);
    return end(&tree, status, bags);
}
