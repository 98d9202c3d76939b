/* The extension tonlake.api.text._json: writes rows of tables as JSON. */
#include "module.h"

static PyMethodDef methods[] = {
    {"add_crc32c", add_crc32c, METH_O, "Return a bag of cells with its checksum."},
    {"compile_layout", compile_layout, METH_O, "Compile a layout from a tuple of fields."},
    {"write_friendly", write_friendly, METH_VARARGS, "Return a user-friendly address."},
    {"write_book", write_book, METH_VARARGS, "Return the address book of accounts as JSON."},
    {"write_row", write_row, METH_VARARGS, "Return the first of a tuple of rows as JSON."},
    {"write_records", write_records, METH_VARARGS,
     "Return records of transactions as JSON, and collect the accounts in them."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tonlake.api.text._json", "Rows of tables to JSON.", 0, methods,
};

PyMODINIT_FUNC PyInit__json(void)
{
    fill_crc32c();
    return PyModule_Create(&definition);
}
