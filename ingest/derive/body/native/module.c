/* The module: a program of layouts, and bodies decoded by it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "decode.h"

#include <stdlib.h>

static const char NAME[] = "tonlake.bodies";

typedef struct {
    Program program;
    Work work;
    PyObject *kept; /* what the program points into */
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
                       "Make a decoder of a program (module program).");

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
                         "layout fits); None for what the reference decoder has to look at.");

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

static PyMethodDef METHODS[] = {
    {"make", make, METH_VARARGS, make_doc},
    {"decode", decode, METH_VARARGS, decode_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_bodies", "Bodies of messages decoded by compiled layouts.", 0, METHODS,
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
