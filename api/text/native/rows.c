/* Python functions that write rows and records as JSON. */
#include "record.h"
#include "rows.h"
#include "writer.h"

enum { MAX_SOURCES = 8 };

PyObject *write_row(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *given, *sources[MAX_SOURCES], *text = NULL;
    if (!PyArg_ParseTuple(args, "OO!:write_row", &capsule, &PyTuple_Type, &given))
        return NULL;
    Layout *layout = open_layout(capsule);
    Py_ssize_t count = PyTuple_Size(given);
    if (!layout)
        return NULL;
    if (count < 1 || count > MAX_SOURCES)
        return PyErr_Format(PyExc_IndexError, "a row is written from 1 to %d", MAX_SOURCES);
    for (Py_ssize_t at = 0; at < count; at++)
        sources[at] = PyTuple_GetItem(given, at);
    Writer writer = {0};
    if (add_sources(&writer, layout, sources, count) == 0)
        text = PyBytes_FromStringAndSize(writer.out.data, (Py_ssize_t)writer.out.size);
    free_writer(&writer);
    return text;
}

/* Append the JSON of a record to a list. */
static int add_text_of(Writer *writer, Layout *layout, RecordParts *parts, PyObject *record,
                       PyObject *texts)
{
    PyObject *sources[RECORD_SOURCES], *text = NULL;
    if (take_record(parts, record, sources) < 0)
        return -1;
    writer->out.size = 0;
    if (add_sources(writer, layout, sources, RECORD_SOURCES) == 0)
        text = PyBytes_FromStringAndSize(writer->out.data, (Py_ssize_t)writer->out.size);
    drop_record(sources);
    int failed = text ? PyList_Append(texts, text) : -1;
    Py_XDECREF(text);
    return failed;
}

PyObject *write_records(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *record, *listed, *named;
    if (!PyArg_ParseTuple(args, "OOO!O!:write_records", &capsule, &record, &PyList_Type, &listed,
                          &PySet_Type, &named))
        return NULL;
    Layout *layout = open_layout(capsule);
    RecordParts *parts = layout ? open_record(record) : NULL;
    PyObject *texts = parts ? PyList_New(0) : NULL;
    Writer writer = {.accounts = {.named = named}};
    for (Py_ssize_t at = 0; texts && at < PyList_Size(listed); at++)
        if (add_text_of(&writer, layout, parts, PyList_GetItem(listed, at), texts) < 0)
            Py_CLEAR(texts);
    free_writer(&writer);
    return texts;
}
