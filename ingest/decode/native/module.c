/* The Python binding: bytes of blocks to Arrow buffers. Uses Python's stable ABI and no global
   state, and releases the GIL while blocks are decoded. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "arrow.h"
#include "cells.h"
#include "decoder.h"
#include "packed.h"
#include "proof.h"

typedef struct {
    Pool *pool;
    Decoder *spare; /* with memory of an earlier call; its user removes it from here */
} ModuleState;

/* A spare decoder keeps at most this much memory. */
#define MAX_SPARE_BYTES (128u << 20)

/* The name of capsules with arrays in Arrow's PyCapsule interface. */
#define CAPSULE_NAME "arrow_array"

static void free_capsule(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, CAPSULE_NAME);
    if (array && array->release) /* not adopted */
        array->release(array);
    free(array);
}

/* Return (number of rows, capsule with an Arrow array), or None instead of the capsule; the table
   is cleared. */
static PyObject *pack_table(PyObject *module, Table *table, TableName name)
{
    const ModuleState *state = PyModule_GetState(module);
    Py_ssize_t rows = (Py_ssize_t)table->count;
    if (!rows)
        return Py_BuildValue("nO", rows, Py_None);
    struct ArrowArray *array = calloc(1, sizeof *array);
    Status status = NO_MEMORY;
    if (array) {
        Py_BEGIN_ALLOW_THREADS
        status = table_export(table, name, state->pool, array);
        table_reset(table);
        Py_END_ALLOW_THREADS
    }
    if (status == DONE) {
        PyObject *capsule = PyCapsule_New(array, CAPSULE_NAME, free_capsule);
        if (capsule)
            return Py_BuildValue("nN", rows, capsule);
        array->release(array);
    } else if (status == NOT_MINE) {
        PyErr_SetString(PyExc_OverflowError, "a column of more than 2 GiB");
    } else {
        PyErr_NoMemory();
    }
    free(array);
    return NULL;
}

static bool read_raw_block(PyObject *item, RawBlock *to)
{
    const char *root_hash, *file_hash;
    Py_ssize_t size, root_size, file_size;
    long long workchain, shard, seqno, mc_seqno;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a block is a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(item, "y#LLLy#y#L", (const char **)&to->data, &size, &workchain, &shard,
                          &seqno, &root_hash, &root_size, &file_hash, &file_size, &mc_seqno))
        return false;
    if (root_size != HASH_BYTES || file_size != HASH_BYTES) {
        PyErr_SetString(PyExc_ValueError, "a hash has 32 bytes");
        return false;
    }
    to->size = (size_t)size;
    to->workchain = workchain;
    to->shard = shard;
    to->seqno = seqno;
    to->mc_seqno = mc_seqno;
    memcpy(to->root_hash.bytes, root_hash, HASH_BYTES);
    memcpy(to->file_hash.bytes, file_hash, HASH_BYTES);
    return true;
}

/* Decode blocks until one is declined, and remove the rows of that one. */
static Status decode_blocks(Decoder *decoder, RawBlock *blocks, size_t count, size_t *done)
{
    for (*done = 0; *done < count; ++*done) {
        size_t before[TABLE_COUNT];
        for (size_t i = 0; i < TABLE_COUNT; i++)
            before[i] = decoder->tables[i].count;
        Status status = decode_block(decoder, &blocks[*done]);
        if (status == DONE)
            continue;
        for (size_t i = 0; i < TABLE_COUNT; i++)
            decoder->tables[i].count = before[i];
        return status;
    }
    return DONE;
}

static PyObject *pack_tables(PyObject *module, Decoder *decoder, size_t done)
{
    PyObject *tables = PyTuple_New(TABLE_COUNT);
    for (size_t i = 0; tables && i < TABLE_COUNT; i++) {
        PyObject *table = pack_table(module, &decoder->tables[i], (TableName)i);
        if (!table || PyTuple_SetItem(tables, (Py_ssize_t)i, table) != 0)
            Py_CLEAR(tables);
    }
    return tables ? Py_BuildValue("nN", (Py_ssize_t)done, tables) : NULL;
}

/* Read pairs of key block and global version; NULL with an error set if that fails. */
static KeyVersion *read_versions(PyObject *pairs, size_t count)
{
    KeyVersion *versions = calloc(count + 1, sizeof *versions);
    if (!versions)
        PyErr_NoMemory();
    for (size_t i = 0; versions && i < count; i++) {
        PyObject *pair = PyTuple_GetItem(pairs, (Py_ssize_t)i);
        long long key_seqno, version;
        if (!PyTuple_Check(pair)) {
            PyErr_SetString(PyExc_TypeError, "a version is a pair of numbers");
        } else if (PyArg_ParseTuple(pair, "LL", &key_seqno, &version)) {
            versions[i] = (KeyVersion){key_seqno, version};
            continue;
        }
        free(versions);
        versions = NULL;
    }
    return versions;
}

static PyObject *decode_all(PyObject *module, Decoder *decoder, PyObject *items)
{
    size_t count = (size_t)PyTuple_Size(items), done = 0;
    RawBlock *blocks = calloc(count + 1, sizeof *blocks);
    Status status;
    if (!blocks)
        return PyErr_NoMemory();
    for (size_t i = 0; i < count; i++)
        if (!read_raw_block(PyTuple_GetItem(items, (Py_ssize_t)i), &blocks[i])) {
            free(blocks);
            return NULL;
        }
    Py_BEGIN_ALLOW_THREADS
    status = decode_blocks(decoder, blocks, count, &done);
    free(blocks);
    Py_END_ALLOW_THREADS
    return status == NO_MEMORY ? PyErr_NoMemory() : pack_tables(module, decoder, done);
}

/* Return the decoder of an earlier call, or a new one. The GIL is held. */
static Decoder *take_decoder(ModuleState *state)
{
    Decoder *decoder = state->spare;
    state->spare = NULL;
    return decoder ? decoder : calloc(1, sizeof *decoder);
}

static void give_back(ModuleState *state, Decoder *decoder)
{
    if (decoder_reset(decoder) > MAX_SPARE_BYTES || state->spare)
        decoder_free(decoder);
    else
        state->spare = decoder;
}

static PyObject *module_decode(PyObject *module, PyObject *args)
{
    PyObject *sequence;
    unsigned long long seed;
    int all_named = 0;
    PyObject *pairs = NULL;
    if (!PyArg_ParseTuple(args, "OK|pO!", &sequence, &seed, &all_named, &PyTuple_Type, &pairs))
        return NULL;
    size_t version_count = pairs ? (size_t)PyTuple_Size(pairs) : 0;
    KeyVersion *versions = read_versions(pairs, version_count);
    /* Our own tuple: its items, also tuples, do not change while the GIL is released. */
    PyObject *items = versions ? PySequence_Tuple(sequence) : NULL;
    ModuleState *state = PyModule_GetState(module);
    Decoder *decoder = items ? take_decoder(state) : NULL;
    PyObject *result = NULL;
    if (decoder) {
        decoder->seed = decoder->writer.seed = seed;
        decoder->all_named = all_named;
        decoder->versions = versions;
        decoder->version_count = version_count;
        result = decode_all(module, decoder, items);
        decoder->versions = NULL;
        decoder->version_count = 0;
        give_back(state, decoder);
    } else if (items) {
        PyErr_NoMemory();
    }
    Py_XDECREF(items);
    free(versions);
    return result;
}

/* Return the shard tops in rows of shard_blocks; the first row is of the masterchain block. */
static PyObject *list_tops(const Decoder *decoder, const Heap *commits)
{
    size_t count = decoder->tables[TABLE_shard_blocks].count - 1;
    const int64_t *committed_by = (const int64_t *)commits->data;
    PyObject *tops = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tops && i < count; i++) {
        const Row_shard_blocks *row = ROW(decoder->tables, shard_blocks, i + 1);
        PyObject *top = Py_BuildValue("((iLLy#y#)L)", (int)row->workchain, (long long)row->shard,
                                      (long long)row->seqno, row->root_hash.bytes,
                                      (Py_ssize_t)HASH_BYTES, row->file_hash.bytes,
                                      (Py_ssize_t)HASH_BYTES, (long long)committed_by[i]);
        if (!top || PyTuple_SetItem(tops, (Py_ssize_t)i, top) != 0)
            Py_CLEAR(tops);
    }
    return tops;
}

static PyObject *pack_tops(const Decoder *decoder, const Row_blocks *header, const Heap *commits,
                           const Heap *extra)
{
    PyObject *tops = list_tops(decoder, commits);
    /* Without data, y# makes it None. */
    return tops ? Py_BuildValue("LNy#", (long long)header->prev_key_block_seqno, tops, extra->data,
                                (Py_ssize_t)extra->size)
                : NULL;
}

static PyObject *module_tops(PyObject *module, PyObject *args)
{
    ModuleState *state = PyModule_GetState(module);
    RawBlock raw = {0};
    Row_blocks header;
    Heap commits = {0}, extra = {0};
    Py_ssize_t size;
    int with_extra;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y#p", (const char **)&raw.data, &size, &with_extra))
        return NULL;
    raw.size = (size_t)size;
    Decoder *decoder = take_decoder(state);
    Status status = NO_MEMORY;
    if (decoder)
        status = decode_tops(decoder, &raw, &header, &commits, with_extra ? &extra : NULL);
    if (status == DONE)
        result = pack_tops(decoder, &header, &commits, &extra);
    heap_free(&commits);
    heap_free(&extra);
    if (decoder)
        give_back(state, decoder);
    if (status == NOT_MINE)
        Py_RETURN_NONE;
    return status == NO_MEMORY ? PyErr_NoMemory() : result;
}

/* Decode a branch whose cells are in tuples; return the number of accounts and the tables. */
static PyObject *decode_packed(PyObject *module, Decoder *decoder, const RawBlock *raw,
                              const Row_blocks *header, Branch *branch, PyObject *handles,
                              PyObject *packed)
{
    size_t accounts = 0;
    PackedCell *cells = take_packed(handles, packed, branch->width);
    if (!cells)
        return NULL;
    Status status;
    branch->cells = cells;
    branch->count = (uint32_t)PyTuple_Size(handles);
    Py_BEGIN_ALLOW_THREADS
    status = decode_branch(decoder, raw, header, branch, &accounts);
    free(cells);
    Py_END_ALLOW_THREADS
    if (status == NOT_MINE)
        Py_RETURN_NONE;
    return status == NO_MEMORY ? PyErr_NoMemory() : pack_tables(module, decoder, accounts);
}

static PyObject *module_decode_branch(PyObject *module, PyObject *args)
{
    ModuleState *state = PyModule_GetState(module);
    PyObject *handles, *packed, *result = NULL;
    RawBlock raw = {0};
    Row_blocks header = {0};
    Branch branch = {0};
    const char *key, *skipped;
    Py_ssize_t key_size, skipped_size;
    long long shard, seqno, mc_seqno, utime;
    int workchain, only_active;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "O!O!Iy#I(iLLLL)y#pK", &PyTuple_Type, &handles, &PyTuple_Type,
                          &packed, &branch.width, &key, &key_size, &branch.used, &workchain,
                          &shard, &seqno, &mc_seqno, &utime, &skipped, &skipped_size,
                          &only_active, &seed))
        return NULL;
    if (key_size != HASH_BYTES || !branch.width || branch.width > HASH_BYTES ||
        branch.used > MAX_KEY_BITS) {
        PyErr_SetString(PyExc_ValueError, "a key has 256 bits, and a handle at most as many");
        return NULL;
    }
    memcpy(branch.key.bytes, key, HASH_BYTES);
    branch.skipped = (const uint8_t *)skipped;
    branch.skipped_count = (size_t)skipped_size / HASH_BYTES;
    branch.only_active = only_active;
    raw.mc_seqno = mc_seqno;
    SET(&header, workchain, workchain);
    SET(&header, shard, shard);
    SET(&header, seqno, seqno);
    SET(&header, gen_utime, utime);
    Decoder *decoder = take_decoder(state);
    if (!decoder)
        return PyErr_NoMemory();
    decoder->seed = seed;
    result = decode_packed(module, decoder, &raw, &header, &branch, handles, packed);
    give_back(state, decoder);
    return result;
}

static PyObject *module_proof(PyObject *module, PyObject *args)
{
    (void)module;
    return read_proof(args);
}

static PyObject *module_pack_records(PyObject *module, PyObject *args)
{
    (void)module;
    return pack_records(args);
}

static PyObject *module_list_below(PyObject *module, PyObject *args)
{
    (void)module;
    return list_below(args);
}

static PyObject *module_find_starts(PyObject *module, PyObject *args)
{
    (void)module;
    return find_starts(args);
}

static PyObject *module_digest_cells(PyObject *module, PyObject *args)
{
    (void)module;
    return digest_cells(args);
}

static PyObject *module_read_cells(PyObject *module, PyObject *args)
{
    (void)module;
    return read_cells(args);
}

static PyObject *pack_layout(const Layout *layout)
{
    PyObject *columns = PyTuple_New((Py_ssize_t)layout->column_count);
    for (size_t i = 0; columns && i < layout->column_count; i++) {
        const Column *column = &layout->columns[i];
        PyObject *pair = Py_BuildValue("ss", column->name, KINDS[column->kind]);
        if (!pair || PyTuple_SetItem(columns, (Py_ssize_t)i, pair) != 0)
            Py_CLEAR(columns);
    }
    return columns ? Py_BuildValue("sN", layout->name, columns) : NULL;
}

static PyObject *module_layout(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    PyObject *tables = PyTuple_New(TABLE_COUNT);
    for (size_t i = 0; tables && i < TABLE_COUNT; i++) {
        PyObject *table = pack_layout(&LAYOUTS[i]);
        if (!table || PyTuple_SetItem(tables, (Py_ssize_t)i, table) != 0)
            Py_CLEAR(tables);
    }
    return tables;
}

static PyObject *module_root_hash(PyObject *module, PyObject *args)
{
    (void)module;
    Tree tree = {0};
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "y#", &data, &size))
        return NULL;
    Status status = tree_parse(&tree, (const uint8_t *)data, (size_t)size);
    if (status == DONE)
        status = tree_digest_whole(&tree);
    PyObject *result = NULL;
    if (status == DONE) {
        const Hash *hash = tree_hash(&tree, tree.root, MAX_LEVEL);
        result = PyBytes_FromStringAndSize((const char *)hash->bytes, HASH_BYTES);
    } else if (status == NOT_MINE) {
        result = Py_None;
        Py_INCREF(result);
    } else {
        PyErr_NoMemory();
    }
    tree_free(&tree);
    return result;
}

static PyObject *module_parse(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *data;
    int check_crc;
    if (!PyArg_ParseTuple(args, "Sp", &data, &check_crc))
        return NULL;
    return parse_cells(data, check_crc);
}

static PyObject *module_crc32c(PyObject *module, PyObject *args)
{
    (void)module;
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "y#", &data, &size))
        return NULL;
    return PyLong_FromUnsignedLong(crc32c((const uint8_t *)data, (size_t)size));
}

static PyObject *module_hashes(PyObject *module, PyObject *data)
{
    (void)module;
    return hash_cells(data);
}

static PyObject *module_bags(PyObject *module, PyObject *args)
{
    (void)module;
    return write_bags(args);
}

static PyMethodDef methods[] = {
    {"decode", module_decode, METH_VARARGS,
     "decode(blocks, seed, all_named=False, versions=()): decode blocks until one is\n"
     "declined.\n\n"
     "A block is (data, workchain, shard, seqno, root_hash, file_hash, mc_seqno). `versions` is a\n"
     "tuple of (seqno of a key block, global version of its configuration). Returns the number of\n"
     "decoded blocks and, per table, the number of rows and a capsule with an Arrow array of\n"
     "them, None for no rows. The root hash of a shard block is verified, unless an earlier\n"
     "masterchain block names it, or `all_named` vouches for that."},
    {"tops", module_tops, METH_VARARGS,
     "tops(data, with_extra): the last key block before a masterchain block, the shard tops it\n"
     "names, and the bag of its McBlockExtra, if requested.\n\n"
     "A top is ((workchain, shard, seqno, root_hash, file_hash), seqno of the masterchain block that\n"
     "commits it). None if it is a key block or declined."},
    {"proof", module_proof, METH_VARARGS,
     "proof(data, workchain, shard, seqno, root_hash, file_hash): the signatures in the proof of a\n"
     "block, not verified yet.\n\n"
     "() if there are none, or hash of the validator set, seqno of the catchain, weight, list of\n"
     "(short id of the key, signature), list of the dictionary's nodes (references, bits, label), and\n"
     "the vote (session, slot, candidate), None if the block's id is signed. None if declined."},
    {"root_hash", module_root_hash, METH_VARARGS,
     "root_hash(data): the hash of the root cell of a bag, None if the bag is declined."},
    {"parse", module_parse, METH_VARARGS,
     "parse(data, check_crc): the root of a bag of cells; lists of its cells (d1, d2 and data),\n"
     "their links and depths; and stored hashes and depths, by cell.\n\n"
     "None if the bag is declined, or its CRC is wrong."},
    {"crc32c", module_crc32c, METH_VARARGS, "crc32c(data): the CRC-32C of bytes."},
    {"hashes", module_hashes, METH_O,
     "hashes(data): lists of the representation hashes, hashes at level 0 and depths at level 0\n"
     "of the cells of a bag; None if the bag is declined."},
    {"bags", module_bags, METH_VARARGS,
     "bags(data, rests, seed): bags of the ends of cells of a bag, each as a cell of its own.\n\n"
     "A rest is (cell, bits, number of the first reference). None if the bag is declined."},
    {"decode_branch", module_decode_branch, METH_VARARGS,
     "decode_branch(handles, packed, width, key, used, (workchain, shard, seqno, mc_seqno, utime),\n"
     "skipped, only_active, seed): decode accounts of a whole state and all their cells.\n\n"
     "The root is the first of `handles`; the first `used` bits of `key` precede its label.\n"
     "Returns the number of accounts and the tables, as `decode` does; None if declined."},
    {"pack_records", module_pack_records, METH_VARARGS,
     "pack_records(keys, values): records of celldb as packed cells: d1, d2, data and the hashes of\n"
     "the children. None if a record is missing, or its hash is not its key."},
    {"list_below", module_list_below, METH_VARARGS,
     "list_below(packed, width, known): handles of the children of packed cells that are not in\n"
     "`known`; they are added to it."},
    {"find_starts", module_find_starts, METH_VARARGS,
     "find_starts(data, first, end, ref_bytes, starts): write the offsets of a bag's cells, 8 bytes\n"
     "each.\n\n"
     "Returns the number of cells, and the end of the last one."},
    {"digest_cells", module_digest_cells, METH_VARARGS,
     "digest_cells(data, starts, ref_bytes, digests, before): compute hashes and depths of the\n"
     "cells below number `before`, the last first; returns how many are left, 0 for none."},
    {"read_cells", module_read_cells, METH_VARARGS,
     "read_cells(data, starts, ref_bytes, handles): packed cells of a bag by their numbers, 8 bytes\n"
     "each; None for a damaged one."},
    {"layout", module_layout, METH_NOARGS, "The tables with names and types of their columns."},
    {NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module)
{
    ModuleState *state = PyModule_GetState(module);
    sha256_open();
    state->pool = pool_open();
    if (!state->pool)
        PyErr_NoMemory();
    return state->pool ? 0 : -1;
}

static void module_free(void *module)
{
    ModuleState *state = PyModule_GetState(module);
    if (state && state->spare)
        decoder_free(state->spare);
    if (state)
        pool_leave(state->pool);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, (void *)module_exec},
    {0, NULL},
};

static PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = "Blocks to the buffers of Arrow.",
    .m_size = sizeof(ModuleState),
    .m_methods = methods,
    .m_slots = module_slots,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module_definition);
}
