/* Python functions that write rows and records as JSON. */
#include "module.h"
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

/* A record of a transaction: its row, its messages, and the states before and after; a tuple of these,
 * or a list of the row's values that has the others among them. */
enum { ROW, MESSAGES, BEFORE, AFTER, PARTS };

/* What a transaction is written from: its row, the incoming message or None, the list of the outgoing
 * ones, and the states before and after. */
enum { IN = 1, OUT, STATE_BEFORE, STATE_AFTER, SOURCES };

/* How records are taken apart: columns, and the rows that stand for some states. */
typedef struct {
    Column direction, hash_before, hash_after;
    Py_ssize_t listed;      /* where a record that is a list has its messages, then the states */
    PyObject *incoming;     /* value of `direction` for the incoming message */
    Py_buffer nonexist_hash; /* hash of a state that does not exist */
    PyObject *nonexist, *unknown;
} Taker;

/* Return a part of a record, borrowed. */
static PyObject *read_part(const Taker *taker, PyObject *record, Py_ssize_t part)
{
    if (PyList_Check(record))
        return part == ROW ? record : PyList_GetItem(record, taker->listed + part - MESSAGES);
    if (PyTuple_Check(record) && PyTuple_Size(record) == PARTS)
        return PyTuple_GetItem(record, part);
    PyErr_SetString(PyExc_TypeError, "a record is a list, or a tuple (row, messages, before, after)");
    return NULL;
}

/* Return the state to write: another stands for one that does not exist, or is unknown. */
static PyObject *settle_state(const Writer *writer, Taker *taker, PyObject *row, Column *column,
                              PyObject *state)
{
    const uint8_t *data;
    size_t size;
    PyObject *hash = state ? read_column(row, column, 0) : NULL;
    if (!hash || find_bytes(writer, hash, &data, &size) < 0)
        return NULL;
    if (size == (size_t)taker->nonexist_hash.len && !memcmp(data, taker->nonexist_hash.buf, size))
        return taker->nonexist;
    return state == Py_None ? taker->unknown : state;
}

/* Find the sources of a record, borrowed but for the list of outgoing messages. */
static int take_record(const Writer *writer, Taker *taker, PyObject *record,
                       PyObject *sources[SOURCES])
{
    PyObject *row = read_part(taker, record, ROW);
    PyObject *messages = row ? read_part(taker, record, MESSAGES) : NULL;
    Py_ssize_t count = messages ? PyList_Size(messages) : -1;
    PyObject *first = count > 0 ? PyList_GetItem(messages, 0) : NULL;
    PyObject *direction = first ? read_column(first, &taker->direction, 0) : Py_None;
    int has_in = count < 0 || !direction
                     ? -1
                     : PyObject_RichCompareBool(direction, taker->incoming, Py_EQ);
    if (has_in < 0)
        return -1;
    sources[ROW] = row;
    sources[IN] = has_in ? first : Py_None;
    sources[STATE_BEFORE] =
        settle_state(writer, taker, row, &taker->hash_before, read_part(taker, record, BEFORE));
    sources[STATE_AFTER] =
        settle_state(writer, taker, row, &taker->hash_after, read_part(taker, record, AFTER));
    if (!sources[STATE_BEFORE] || !sources[STATE_AFTER])
        return -1;
    sources[OUT] = PyList_GetSlice(messages, has_in, count);
    return sources[OUT] ? 0 : -1;
}

/* Append the JSON of a record to a list. */
static int add_text_of(Writer *writer, Layout *layout, Taker *taker, PyObject *record,
                       PyObject *texts)
{
    PyObject *sources[SOURCES], *text = NULL;
    if (take_record(writer, taker, record, sources) < 0)
        return -1;
    writer->out.size = 0;
    if (add_sources(writer, layout, sources, SOURCES) == 0)
        text = PyBytes_FromStringAndSize(writer->out.data, (Py_ssize_t)writer->out.size);
    Py_DECREF(sources[OUT]);
    int failed = text ? PyList_Append(texts, text) : -1;
    Py_XDECREF(text);
    return failed;
}

PyObject *write_records(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *listed, *named;
    Py_buffer values;
    Taker taker = {0};
    if (!PyArg_ParseTuple(args, "O((Un)(Un)(Un)nUy*OO)O!O!y*:write_records", &capsule,
                          &taker.direction.name, &taker.direction.listed, &taker.hash_before.name,
                          &taker.hash_before.listed, &taker.hash_after.name,
                          &taker.hash_after.listed, &taker.listed, &taker.incoming,
                          &taker.nonexist_hash, &taker.nonexist, &taker.unknown, &PyList_Type,
                          &listed, &PySet_Type, &named, &values))
        return NULL;
    Layout *layout = open_layout(capsule);
    PyObject *texts = layout ? PyList_New(0) : NULL;
    Writer writer = {
        .named = named, .values = values.buf, .value_count = (size_t)values.len / VALUE_BYTES};
    for (Py_ssize_t at = 0; texts && at < PyList_Size(listed); at++)
        if (add_text_of(&writer, layout, &taker, PyList_GetItem(listed, at), texts) < 0)
            Py_CLEAR(texts);
    free_writer(&writer);
    PyBuffer_Release(&values);
    PyBuffer_Release(&taker.nonexist_hash);
    Py_XDECREF(taker.direction.type);
    Py_XDECREF(taker.hash_before.type);
    Py_XDECREF(taker.hash_after.type);
    return texts;
}
