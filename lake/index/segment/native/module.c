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
     "Return (number, row) for each row in the postings of hashes that has another time."},
    {"list_nearest", list_nearest, METH_VARARGS,
     "Return places of postings by the times of their rows: rows, times of all rows, start and end "
     "of the places, the least and the greatest time, the maximum number of places, and whether "
     "the latest come first."},
    {"pack_numbers", pack_numbers, METH_VARARGS,
     "Return signed 64-bit numbers packed: the low bits to cut off, and whether ascending numbers "
     "take the fewest bytes."},
    {"list_postings", list_postings, METH_VARARGS,
     "Return the sorted, distinct rows of postings: columns, the key first; low bits cut off the "
     "key; a mask of the columns that distinguish rows of a key; places of the columns returned."},
    {"group_keys", group_keys, METH_O,
     "Return sorted keys, each once, and the end of each key's rows."},
    {"cut_keys", cut_keys, METH_VARARGS, "Return keys without their low bits."},
    {"count_equal_bits", count_equal_bits, METH_O,
     "Return how many low bits of 64 can be cut off while different keys stay different."},
    {"make_row_type", make_row_type, METH_VARARGS,
     "Return a new row type, given its name and a tuple of column names."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)start},
    {0, NULL},
};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_rows",
    .m_doc = "Writes and reads index segments, and holds decoded row groups.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__rows(void)
{
    return PyModuleDef_Init(&definition);
}
