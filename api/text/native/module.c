/* Rows of tables to JSON: the extension tonlake.api.text._json. */
#include "address.h"
#include "book.h"
#include "crc32c.h"
#include "layout.h"
#include "record.h"
#include "trace.h"
#include "writer.h"

static PyMethodDef methods[] = {
    {"add_crc32c", add_crc32c, METH_O, "Return a bag of cells with its checksum."},
    {"compile_layout", compile_layout, METH_O, "Return a layout made of a tuple of fields."},
    {"compile_record", compile_record, METH_VARARGS, "Return what records are taken apart by."},
    {"write_friendly", write_friendly, METH_VARARGS, "Write an address as 48 characters."},
    {"write_book", write_book, METH_VARARGS, "Write what is known of some accounts as JSON."},
    {"write_row", write_row, METH_VARARGS, "Write the first of a tuple of rows as JSON."},
    {"write_records", write_records, METH_VARARGS,
     "Write records of transactions, and name the accounts in them."},
    {"write_trace", write_trace, METH_VARARGS,
     "Write the tree, the order and the transactions of a trace, and name the accounts in them."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tonlake.api.text._json", "Rows of tables to JSON.", 0, methods, NULL, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__json(void)
{
    return PyModule_Create(&definition);
}
