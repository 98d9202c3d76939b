/* Python binding: encodes a record batch as a Parquet file. Stable ABI, no global state. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "file.h"

static bool fits(const struct ArrowSchema *schema, const struct ArrowArray *rows, const Plan *plan)
{
    return strcmp(schema->format, "+s") == 0 && rows->length > 0 && rows->offset == 0 &&
           plan->columns > 0 && (size_t)schema->n_children == plan->columns &&
           (size_t)rows->n_children == plan->columns;
}

static PyObject *encode(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *schema_capsule, *rows_capsule;
    const char *head, *tail, *bounded, *sorted;
    Py_ssize_t head_size, tail_size, bounded_size, sorted_size;
    if (!PyArg_ParseTuple(args, "OO(y#y#y#y#)", &schema_capsule, &rows_capsule, &head, &head_size,
                          &tail, &tail_size, &bounded, &bounded_size, &sorted, &sorted_size))
        return NULL;
    const struct ArrowSchema *schema = PyCapsule_GetPointer(schema_capsule, "arrow_schema");
    const struct ArrowArray *rows =
        schema ? PyCapsule_GetPointer(rows_capsule, "arrow_array") : NULL;
    if (!rows)
        return NULL;
    Plan plan = {
        .head = (const uint8_t *)head, .head_size = (size_t)head_size,
        .tail = (const uint8_t *)tail, .tail_size = (size_t)tail_size,
        .bounded = (const uint8_t *)bounded, .columns = (size_t)bounded_size,
        .sorted = (const uint8_t *)sorted, .sorted_count = (size_t)sorted_size,
    };
    Output file = {0};
    Status status = DECLINED;
    Py_BEGIN_ALLOW_THREADS
    if (fits(schema, rows, &plan))
        status = write_file(schema, rows, &plan, &file);
    Py_END_ALLOW_THREADS
    PyObject *made = NULL;
    if (status == DONE)
        made = PyBytes_FromStringAndSize((const char *)file.data, (Py_ssize_t)file.size);
    else if (status == DECLINED)
        made = Py_NewRef(Py_None);
    else
        PyErr_NoMemory();
    output_free(&file);
    return made;
}

static PyMethodDef methods[] = {
    {"encode", encode, METH_VARARGS,
     "Return the Parquet file of a record batch, or None if pyarrow has to write it."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_parquet",
    .m_doc = "Encodes few rows as a Parquet file.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__parquet(void)
{
    return PyModuleDef_Init(&definition);
}
