/* The binding: bytes of blocks in, buffers of Arrow out. Python's stable ABI, no global state; the
   interpreter is free while blocks are decoded. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "decoder.h"

/* Memory of a column, handed over to Python. */
typedef struct {
    PyObject_HEAD
    uint8_t *data;
    Py_ssize_t size;
} Buffer;

typedef struct {
    PyObject *buffer_type;
    bool has_instructions;
    Decoder *spare; /* with memory of an earlier call; whoever uses it takes it away */
} ModuleState;

/* A spare decoder keeps at most this much memory. */
#define MAX_SPARE_BYTES (128u << 20)

static void buffer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    free(((Buffer *)self)->data);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int buffer_get(PyObject *self, Py_buffer *view, int flags)
{
    Buffer *buffer = (Buffer *)self;
    return PyBuffer_FillInfo(view, self, buffer->data, buffer->size, 1, flags);
}

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, (void *)"Read-only memory of one column."},
    {Py_tp_dealloc, (void *)buffer_dealloc},
    {Py_bf_getbuffer, (void *)buffer_get},
    {0, NULL},
};

static PyType_Spec buffer_spec = {
    .name = "ingest.native._core.Buffer",
    .basicsize = sizeof(Buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = buffer_slots,
};

/* Hand the memory of a heap over; None for one that was not used. */
static PyObject *hand_over(PyObject *module, Heap *heap)
{
    ModuleState *state = PyModule_GetState(module);
    if (!heap->data)
        Py_RETURN_NONE;
    Buffer *buffer = PyObject_New(Buffer, (PyTypeObject *)state->buffer_type);
    if (!buffer)
        return NULL;
    buffer->data = heap->data;
    buffer->size = (Py_ssize_t)heap->size;
    *heap = (Heap){0};
    return (PyObject *)buffer;
}

/* (number of NULLs, validity, values, offsets) */
static PyObject *pack_array(PyObject *module, Array *array)
{
    PyObject *validity = hand_over(module, &array->validity);
    PyObject *values = hand_over(module, &array->values);
    PyObject *offsets = hand_over(module, &array->offsets);
    PyObject *packed = NULL;
    if (validity && values && offsets)
        packed = Py_BuildValue("nOOO", (Py_ssize_t)array->null_count, validity, values, offsets);
    Py_XDECREF(validity);
    Py_XDECREF(values);
    Py_XDECREF(offsets);
    return packed;
}

/* (number of rows, one tuple per column); nothing is left of the table. */
static PyObject *pack_table(PyObject *module, Table *table, TableName name)
{
    size_t count = LAYOUTS[name].column_count, rows = table->count;
    Array *arrays = calloc(count, sizeof *arrays);
    PyObject *columns = PyTuple_New((Py_ssize_t)count);
    uint32_t *order = NULL;
    Status status = arrays && columns ? DONE : NO_MEMORY;
    if (status == DONE) {
        Py_BEGIN_ALLOW_THREADS
        status = table_sort(table, name, &order);
        if (status == DONE)
            status = table_fill(table, name, order, arrays);
        free(order);
        table_reset(table);
        Py_END_ALLOW_THREADS
    }
    bool failed = status != DONE;
    for (size_t i = 0; arrays && i < count; i++) {
        PyObject *array = failed ? NULL : pack_array(module, &arrays[i]);
        failed |= !array || PyTuple_SetItem(columns, (Py_ssize_t)i, array) != 0;
        array_free(&arrays[i]);
    }
    free(arrays);
    if (!failed)
        return Py_BuildValue("nN", (Py_ssize_t)rows, columns);
    Py_XDECREF(columns);
    if (status == NOT_MINE)
        PyErr_SetString(PyExc_OverflowError, "a column of more than 2 GiB");
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
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

/* Decode blocks until one is declined, whose rows are taken off again. */
static Status decode_blocks(Decoder *decoder, const RawBlock *blocks, size_t count, size_t *done)
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

/* The decoder of an earlier call, or a new one. The interpreter's lock is held. */
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
    PyObject *given;
    unsigned long long seed;
    int portable;
    if (!PyArg_ParseTuple(args, "OKp", &given, &seed, &portable))
        return NULL;
    /* A tuple of our own: its items, tuples too, stay as they are while the lock is not held. */
    PyObject *items = PySequence_Tuple(given);
    if (!items)
        return NULL;
    ModuleState *state = PyModule_GetState(module);
    Decoder *decoder = take_decoder(state);
    PyObject *result = NULL;
    if (decoder) {
        decoder->sha = sha256_choose(state->has_instructions && !portable);
        decoder->seed = decoder->writer.seed = seed;
        result = decode_all(module, decoder, items);
        give_back(state, decoder);
    } else {
        PyErr_NoMemory();
    }
    Py_DECREF(items);
    return result;
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

static PyObject *module_has_sha_instructions(PyObject *module, PyObject *args)
{
    (void)args;
    return PyBool_FromLong(((const ModuleState *)PyModule_GetState(module))->has_instructions);
}

static PyObject *module_root_hash(PyObject *module, PyObject *args)
{
    const ModuleState *state = PyModule_GetState(module);
    Sha256 sha = sha256_choose(state->has_instructions);
    Tree tree = {0};
    const char *data;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "y#", &data, &size))
        return NULL;
    Status status = tree_parse(&tree, &sha, (const uint8_t *)data, (size_t)size);
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

static PyMethodDef methods[] = {
    {"decode", module_decode, METH_VARARGS,
     "decode(blocks, seed, portable): decode blocks until one is declined.\n\n"
     "A block is (data, workchain, shard, seqno, root_hash, file_hash, mc_seqno). Returns the\n"
     "number of blocks decoded and, per table, its rows and columns."},
    {"root_hash", module_root_hash, METH_VARARGS,
     "root_hash(data): the hash of the root cell of a bag, None if the bag is declined."},
    {"layout", module_layout, METH_NOARGS, "The tables, each with names and types of its columns."},
    {"has_sha_instructions", module_has_sha_instructions, METH_NOARGS,
     "Whether the processor has instructions for SHA-256."},
    {NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module)
{
    ModuleState *state = PyModule_GetState(module);
    state->has_instructions = sha256_has_instructions();
    state->buffer_type = PyType_FromModuleAndSpec(module, &buffer_spec, NULL);
    return state->buffer_type ? 0 : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    ModuleState *state = PyModule_GetState(module);
    Py_VISIT(state->buffer_type);
    return 0;
}

static int module_clear(PyObject *module)
{
    ModuleState *state = PyModule_GetState(module);
    Py_CLEAR(state->buffer_type);
    return 0;
}

static void module_free(void *module)
{
    ModuleState *state = PyModule_GetState(module);
    if (state && state->spare)
        decoder_free(state->spare);
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
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module_definition);
}
