/* The binding: records of look-up runs to Python objects. Python's stable ABI, no global state. */
#include "rows.h"

static int start(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&source_spec);
    return type && PyModule_AddObjectRef(module, "Source", type) == 0 ? (Py_DECREF(type), 0) : -1;
}

static PyMethodDef methods[] = {
    {"find_others", find_others, METH_VARARGS,
     "Return (number, row) for each row of another time that postings have of hashes."},
    {"make_row_type", make_row_type, METH_VARARGS,
     "Return a type of rows: its name, and its columns as a tuple."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)start},
    {0, NULL},
};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_rows",
    .m_doc = "Records of look-up runs to Python objects.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__rows(void)
{
    return PyModuleDef_Init(&definition);
}
