/* Python binding: records of index segments as Python objects, and rows of tables as records.
   Python's stable ABI, no global state. */
#include "compose/words.h"
#include "rows.h"

extern PyType_Spec composer_spec; /* its header defines another Row */
extern PyType_Spec group_spec;

static bool add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    bool added = type && PyModule_AddObjectRef(module, name, type) == 0;
    Py_XDECREF(type);
    return added;
}

static int start(PyObject *module)
{
    return add_type(module, "Source", &source_spec) &&
                   add_type(module, "Numbers", &numbers_spec) &&
                   add_type(module, "Composer", &composer_spec) &&
                   add_type(module, "Group", &group_spec) &&
                   PyModule_AddIntConstant(module, "GAS_PRICE", GAS_PRICE) == 0
               ? 0
               : -1;
}

static PyMethodDef methods[] = {
    {"find_others", find_others, METH_VARARGS,
     "Return (number, row) for each row of another time that postings have of hashes."},
    {"list_nearest", list_nearest, METH_VARARGS,
     "Return places of postings in the order of the times of their rows: rows, times of all rows, "
     "the first place and that behind the last, the least and the greatest time, how many places "
     "at most, whether the latest come first."},
    {"pack_numbers", pack_numbers, METH_VARARGS,
     "Return signed 64-bit numbers packed; the second argument: low bits cut off each."},
    {"list_postings", list_postings, METH_VARARGS,
     "Return the sorted, distinct rows of postings: columns, the key first; low bits cut off the "
     "key; a mask of the columns that distinguish rows of a key; places of the columns returned."},
    {"group_keys", group_keys, METH_O,
     "Return sorted keys, each once, and where the rows of each end."},
    {"cut_keys", cut_keys, METH_VARARGS, "Return keys without their low bits."},
    {"count_equal_bits", count_equal_bits, METH_O,
     "Return how many of the last bits of 64 can be cut off, and different keys still differ."},
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
    .m_doc = "Index segments, written and read, and decoded row groups.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__rows(void)
{
    return PyModuleDef_Init(&definition);
}
