/* The Python module: builds a program of layouts and decodes bodies with it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "decode.h"

#include <stdlib.h>
#include <string.h>

static const char NAME[] = "tonlake.bodies";

typedef struct {
    Program program;
    Work work;
    PyObject *kept; /* owns the memory that the program points to */
} Decoder;

static void free_decoder(PyObject *capsule)
{
    Decoder *decoder = PyCapsule_GetPointer(capsule, NAME);
    if (!decoder)
        return;
    PyMem_Free(decoder->program.texts);
    PyMem_Free(decoder->program.sizes);
    free(decoder->work.out.text);
    free(decoder->work.snake);
    free(decoder->work.order);
    free(decoder->work.scratch);
    Py_XDECREF(decoder->kept);
    PyMem_Free(decoder);
}

static bool fill_texts(Program *program, PyObject *texts)
{
    Py_ssize_t count = PyTuple_Size(texts);
    program->texts = PyMem_Calloc((size_t)count + 1, sizeof *program->texts);
    program->sizes = PyMem_Calloc((size_t)count + 1, sizeof *program->sizes);
    if (!program->texts || !program->sizes) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(texts, i), &text, &size) < 0)
            return false;
        program->texts[i] = text;
        program->sizes[i] = (uint32_t)size;
    }
    return true;
}

PyDoc_STRVAR(make_doc, "make(code, starts, opcodes, layouts, texts, signed, wallet, /) -> decoder\n\n"
                       "Create a decoder from a program (module program).");

static PyObject *make(PyObject *self, PyObject *args)
{
    (void)self;
    const char *code, *starts, *opcodes, *layouts;
    Py_ssize_t code_size, starts_size, opcodes_size, layouts_size;
    PyObject *texts;
    int signed_node, wallet_node;
    if (!PyArg_ParseTuple(args, "y#y#y#y#O!ii", &code, &code_size, &starts, &starts_size, &opcodes,
                          &opcodes_size, &layouts, &layouts_size, &PyTuple_Type, &texts, &signed_node, &wallet_node))
        return NULL;
    Decoder *decoder = PyMem_Calloc(1, sizeof *decoder);
    if (!decoder)
        return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(decoder, NAME, free_decoder);
    if (!capsule) {
        PyMem_Free(decoder);
        return NULL;
    }
    Program *program = &decoder->program;
    decoder->work.scratch = malloc(MAX_WRITTEN);
    decoder->work.scratch_room = MAX_WRITTEN;
    if (!decoder->work.scratch) {
        Py_DECREF(capsule);
        return PyErr_NoMemory();
    }
    decoder->work.program = program;
    decoder->kept = Py_NewRef(args);
    program->code = (const int32_t *)code;
    program->starts = (const int32_t *)starts;
    program->opcodes = (const int32_t *)opcodes;
    program->layouts = (const int32_t *)layouts;
    program->opcode_count = (unsigned)(opcodes_size / (Py_ssize_t)(3 * sizeof(int32_t)));
    program->signed_node = signed_node;
    program->wallet_node = wallet_node;
    if (!fill_texts(program, texts)) {
        Py_DECREF(capsule);
        return NULL;
    }
    return capsule;
}

PyDoc_STRVAR(decode_doc, "decode(decoder, boc, with_wallets, /) -> tuple | None\n\n"
                         "Return the opcode (-1: none) and the object of a body as JSON (None: no "
                         "layout fits); None if the reference decoder has to decode it.");

static PyObject *decode(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule;
    const char *data;
    Py_ssize_t size;
    int with_wallets;
    int64_t opcode;
    if (!PyArg_ParseTuple(args, "Oy#p", &capsule, &data, &size, &with_wallets))
        return NULL;
    Decoder *decoder = PyCapsule_GetPointer(capsule, NAME);
    if (!decoder)
        return NULL;
    Work *work = &decoder->work;
    switch (decode_body(work, (const uint8_t *)data, (size_t)size, with_wallets, &opcode)) {
    case READ:
        return Py_BuildValue("Ly#", (long long)opcode, work->out.text, (Py_ssize_t)work->out.size);
    case FAILED:
        return Py_BuildValue("LO", (long long)opcode, Py_None);
    default:
        Py_RETURN_NONE;
    }
}

/* Remove the quotes of a value without escapes. */
static void unquote(Out *out, size_t from)
{
    if (out->size - from < 2 || out->text[from] != '"')
        return;
    out->size -= 2;
    memmove(out->text + from, out->text + from + 1, out->size - from);
}

/* Decode one field of each body into Arrow buffers; list the declined bodies. */
static bool decode_bodies(Work *work, const int32_t *offsets, const uint8_t *data,
                          Py_ssize_t count, uint32_t opcode, int32_t node, int32_t field,
                          bool is_plain, int32_t *ends, uint8_t *valid, PyObject *declined)
{
    Out *out = &work->out;
    out->size = 0;
    ends[0] = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        size_t from = out->size;
        bool is_there = false;
        Result result = decode_field(work, data + offsets[i], (size_t)(offsets[i + 1] - offsets[i]),
                                     opcode, node, field, &is_there);
        if (result != READ || !is_there)
            out->size = from;
        else if (is_plain)
            unquote(out, from);
        if (out->size > INT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "the fields have more than 2^31 bytes");
            return false;
        }
        if (result == READ && (is_there || field < 0))
            valid[i / 8] |= (uint8_t)(1 << i % 8);
        ends[i + 1] = (int32_t)out->size;
        if (result != DECLINED)
            continue;
        PyObject *place = PyLong_FromSsize_t(i);
        bool is_listed = place && PyList_Append(declined, place) == 0;
        Py_XDECREF(place);
        if (!is_listed)
            return false;
    }
    return true;
}

PyDoc_STRVAR(fields_doc, "fields(decoder, node, opcode, field, plain, offsets, data, count, /) -> "
                         "(offsets, data, valid, declined)\n\n"
                         "Decode one field of each of `count` bodies, Arrow binary values, with the "
                         "layout of a node. Return JSON texts as Arrow buffers, without quotes if "
                         "`plain`; invalid: NULL, or the body does not fit. Field -1: no text, valid "
                         "if the body fits. `declined` lists the bodies left to the codecs.");

static PyObject *fields(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule;
    int node, field, is_plain;
    unsigned opcode;
    Py_buffer offsets, data;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "OiIipy*y*n", &capsule, &node, &opcode, &field, &is_plain, &offsets,
                          &data, &count))
        return NULL;
    PyObject *ends = NULL, *valid = NULL, *declined = NULL, *text = NULL, *found = NULL;
    Decoder *decoder = PyCapsule_GetPointer(capsule, NAME);
    if (!decoder)
        goto done;
    if (count < 0 || offsets.len / (Py_ssize_t)sizeof(int32_t) < count + 1) {
        PyErr_SetString(PyExc_ValueError, "fewer offsets than bodies");
        goto done;
    }
    ends = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int32_t));
    valid = PyBytes_FromStringAndSize(NULL, count / 8 + 1);
    declined = PyList_New(0);
    if (!ends || !valid || !declined)
        goto done;
    uint8_t *bits = (uint8_t *)PyBytes_AsString(valid);
    memset(bits, 0, (size_t)(count / 8 + 1));
    if (!decode_bodies(&decoder->work, offsets.buf, data.buf, count, opcode, node, field, is_plain,
                       (int32_t *)PyBytes_AsString(ends), bits, declined))
        goto done;
    text = PyBytes_FromStringAndSize(decoder->work.out.text, (Py_ssize_t)decoder->work.out.size);
    if (text)
        found = PyTuple_Pack(4, ends, text, valid, declined);
done:
    Py_XDECREF(ends);
    Py_XDECREF(valid);
    Py_XDECREF(declined);
    Py_XDECREF(text);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&data);
    return found;
}

static PyMethodDef METHODS[] = {
    {"fields", fields, METH_VARARGS, fields_doc},
    {"make", make, METH_VARARGS, make_doc},
    {"decode", decode, METH_VARARGS, decode_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_bodies", "Decodes message bodies with compiled layouts.", 0, METHODS,
};

PyMODINIT_FUNC PyInit__bodies(void)
{
    PyObject *module = PyModule_Create(&MODULE);
    if (module && PyModule_AddIntConstant(module, "OPERATIONS", OPERATIONS) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
