/* The Python type that composes a segment. */
#include "composer.h"
#include "words.h"

#include <stddef.h>

/* Arrays returned to Python, by their names in the segment. */
static const struct {
    const char *name;
    size_t offset;
    char code;
} arrays[] = {
    {"record.at", offsetof(Composer, record_at), 'q'},
    {"hash", offsetof(Composer, hash), 'B'},
    {"hash_after", offsetof(Composer, hash_after), 'B'},
    {"lt", offsetof(Composer, lt), 'q'},
    {"now", offsetof(Composer, now), 'q'},
    {"mc_seqno", offsetof(Composer, mc_seqno), 'q'},
    {"account.id", offsetof(Composer, account_id), 'B'},
    {"account.row", offsetof(Composer, account_row), 'q'},
    {"state.at", offsetof(Composer, state_at), 'q'},
    {"state", offsetof(Composer, state), 'B'},
    {"balance", offsetof(Composer, balance), 'q'},
    {"root", offsetof(Composer, root), 'q'},
    {"parent", offsetof(Composer, parent), 'q'},
    {"other", offsetof(Composer, other), 'B'},
    {"ended.key", offsetof(Composer, ended_key), 'Q'},
    {"ended.at", offsetof(Composer, ended_at), 'q'},
    {"ended.data", offsetof(Composer, ended_data), 'B'},
    {"wait", offsetof(Composer, wait), 'q'},
};

enum { ARRAY_COUNT = sizeof arrays / sizeof *arrays };

static const size_t others[] = {
    offsetof(Composer, trace_id), offsetof(Composer, parent_hash), offsetof(Composer, failed),
    offsetof(Composer, ends), offsetof(Composer, norms), offsetof(Composer, norm_rows),
};

enum { OTHER_COUNT = sizeof others / sizeof *others };

static Growing *array_of(Composer *composer, int at)
{
    size_t offset = at < ARRAY_COUNT ? arrays[at].offset : others[at - ARRAY_COUNT];
    return (Growing *)(void *)((char *)composer + offset);
}

static bool check_memory(Composer *composer)
{
    composer->broken = composer->broken || composer->encoder.failed;
    for (int at = 0; at < ARRAY_COUNT + OTHER_COUNT; at++)
        composer->broken = composer->broken || array_of(composer, at)->failed;
    if (composer->broken)
        PyErr_NoMemory();
    return !composer->broken;
}

/* Start a change: only one thread at a time, and not after the end. */
static bool enter(Composer *composer)
{
    if (composer->broken) {
        PyErr_NoMemory();
        return false;
    }
    if (composer->busy || composer->ended) {
        PyErr_SetString(PyExc_RuntimeError, "the segment takes no more rows");
        return false;
    }
    composer->busy = true;
    return true;
}

static void composer_dealloc(PyObject *self)
{
    Composer *composer = (Composer *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int at = 0; at < ARRAY_COUNT + OTHER_COUNT; at++)
        free_growing(array_of(composer, at));
    for (int at = 0; at < TABLES; at++)
        Py_XDECREF(composer->names[at]);
    free_encoder(&composer->encoder);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Parse the columns and codes of a kind of rows; `before` columns of its table precede them. */
static bool take_layout(Layout *layout, Kind kind, PyObject *item, Py_ssize_t before)
{
    PyObject *columns;
    const char *codes;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(item, "O!s#:kind", &PyTuple_Type, &columns, &codes, &count))
        return false;
    if (count != PyTuple_Size(columns) || count > MAX_COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "a kind of rows needs one code per column");
        return false;
    }
    *layout = (Layout){.kind = kind, .count = (int)count, .body = -1};
    for (int at = 0; at < count; at++) {
        layout->codes[at] = codes[at];
        layout->places[at] = (int)before + at;
        if (codes[at] == 'n')
            layout->body = at;
    }
    return true;
}

/* Add the columns of a kind of rows to those requested from its table. */
static bool add_names(PyObject *names, PyObject *item)
{
    PyObject *columns = PySequence_GetItem(item, 0);
    Py_ssize_t end = PyList_Size(names);
    bool added = columns && PyList_SetSlice(names, end, end, columns) == 0;
    Py_XDECREF(columns);
    return added;
}

static bool take_kinds(Composer *composer, PyObject *kinds)
{
    static const TableName of[KINDS] = {TRANSACTIONS, MESSAGES, STATES, STATES, TRACES};
    PyObject *lists[TABLES] = {NULL};
    bool taken = true;
    for (int at = 0; taken && at < TABLES; at++) {
        lists[at] = PyList_New(0);
        taken = lists[at] != NULL;
        for (int column = 0; taken && column < plans[at].count; column++) {
            PyObject *name = PyUnicode_FromString(plans[at].columns[column].name);
            taken = name && PyList_Append(lists[at], name) == 0;
            Py_XDECREF(name);
        }
    }
    for (int kind = 0; taken && kind < KINDS; kind++) {
        PyObject *item = PyTuple_GetItem(kinds, kind);
        taken = take_layout(&composer->layouts[kind], (Kind)kind, item,
                            PyList_Size(lists[of[kind]])) &&
                add_names(lists[of[kind]], item);
    }
    for (int at = 0; at < TABLES; at++) {
        composer->names[at] = taken ? PyList_AsTuple(lists[at]) : NULL;
        taken = taken && composer->names[at];
        Py_XDECREF(lists[at]);
    }
    return taken;
}

static PyObject *composer_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *kinds;
    Py_ssize_t max_remembered, max_numbered;
    (void)names;
    if (!PyArg_ParseTuple(args, "O!nn:Composer", &PyTuple_Type, &kinds, &max_remembered,
                          &max_numbered))
        return NULL;
    if (PyTuple_Size(kinds) != KINDS) {
        PyErr_SetString(PyExc_ValueError, "Composer needs all kinds of rows");
        return NULL;
    }
    Composer *composer = PyObject_New(Composer, type);
    if (!composer)
        return NULL;
    memset((char *)composer + sizeof(PyObject), 0, sizeof *composer - sizeof(PyObject));
    open_encoder(&composer->encoder);
    composer->encoder.max_remembered = (size_t)max_remembered;
    composer->encoder.max_numbered = (size_t)max_numbered;
    append_word(&composer->state_at, 0);
    if (!take_kinds(composer, kinds) || PyErr_Occurred()) {
        Py_DECREF(composer);
        return NULL;
    }
    return (PyObject *)composer;
}

/* Whether the codes of a kind fit the columns of a table. */
static bool check_layout(const Layout *layout, const Table *table)
{
    for (int at = 0; at < layout->count; at++) {
        Form form = table->columns[layout->places[at]].form;
        char code = layout->codes[at];
        if (!strchr(form == BITS      ? "."
                    : form == TEXT    ? ".s"
                    : form == INTEGER ? "ilptgro"
                    : form == VARYING ? "bn"
                    : form == HASH    ? "bnh"
                                      : "a",
                    code) ||
            !code) {
            PyErr_Format(PyExc_ValueError, "a column of code %c has another type", code);
            return false;
        }
    }
    return true;
}

static bool open_checked(const Composer *composer, TableName name, PyObject *source, Table *table)
{
    return table_open(table, source, composer->names[name]) &&
           table_check(table, plans[name].columns, plans[name].count);
}

static bool open_part(const Composer *composer, PyObject *const *sources, Part *part)
{
    for (int at = 0; at < PART_TABLES; at++)
        if (!open_checked(composer, (TableName)at, sources[at], &part->tables[at]))
            return false;
    for (int at = 0; at < 2; at++)
        part->traced.secret[at] = part->by_hash.secret[at] = composer->encoder.seen.secret[at];
    return check_layout(&composer->layouts[TRANSACTION], &part->tables[TRANSACTIONS]) &&
           check_layout(&composer->layouts[MESSAGE], &part->tables[MESSAGES]) &&
           check_layout(&composer->layouts[FACTS], &part->tables[STATES]) &&
           check_layout(&composer->layouts[STATE], &part->tables[STATES]);
}

static PyObject *composer_add_part(PyObject *self, PyObject *args)
{
    Composer *composer = (Composer *)self;
    PyObject *sources[PART_TABLES], *records = NULL;
    Part part = {0};
    Growing out = {0};
    if (!PyArg_ParseTuple(args, "OOOO:add_part", &sources[0], &sources[1], &sources[2],
                          &sources[3]) ||
        !enter(composer))
        return NULL;
    if (open_part(composer, sources, &part)) {
        Py_BEGIN_ALLOW_THREADS
        if (join_part(&part))
            compose_part(composer, &part, &out);
        else
            composer->broken = true;
        Py_END_ALLOW_THREADS
        if (check_memory(composer))
            records = hand_over(&out, 'B');
    }
    free_growing(&out);
    free_part(&part);
    composer->busy = false;
    return records;
}

static PyObject *composer_end(PyObject *self, PyObject *source)
{
    Composer *composer = (Composer *)self;
    Table traces = {.count = 0};
    PyObject *done = NULL;
    if (!enter(composer))
        return NULL;
    if (open_checked(composer, TRACES, source, &traces) &&
        check_layout(&composer->layouts[TRACE], &traces)) {
        Py_BEGIN_ALLOW_THREADS
        compose_traces(composer, &traces);
        Py_END_ALLOW_THREADS
        composer->ended = true;
        done = check_memory(composer) ? Py_NewRef(Py_None) : NULL;
    }
    table_close(&traces);
    composer->busy = false;
    return done;
}

static bool check_ended(const Composer *composer)
{
    if (!composer->ended || composer->broken)
        PyErr_SetString(PyExc_RuntimeError, "the segment is not complete");
    return composer->ended && !composer->broken;
}

static PyObject *composer_copy(PyObject *self, PyObject *name)
{
    Composer *composer = (Composer *)self;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text || !check_ended(composer))
        return NULL;
    Growing copy = {0};
    if (strcmp(text, "richest") == 0) {
        copy.failed = !order_by_balance(composer, &copy);
        return hand_over(&copy, 'q');
    }
    if (strcmp(text, "account.key") == 0) {
        for (size_t at = 0; at < composer->account_id.size; at += ACCOUNT_ID_BYTES)
            append_word(&copy, cut_hash(composer->account_id.data + at));
        return hand_over(&copy, 'Q');
    }
    for (int at = 0; at < ARRAY_COUNT; at++)
        if (strcmp(text, arrays[at].name) == 0) {
            const Growing *array = array_of(composer, at);
            append(&copy, array->data, array->size);
            return hand_over(&copy, arrays[at].code);
        }
    return PyErr_Format(PyExc_KeyError, "%U", name);
}

static PyObject *composer_postings(PyObject *self, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    return text && check_ended((Composer *)self) ? collect_columns((Composer *)self, text) : NULL;
}

static PyObject *composer_shapes(PyObject *self, PyObject *unused)
{
    (void)unused;
    const Composer *composer = (const Composer *)self;
    return check_ended(composer) ? list_shapes(&composer->encoder, composer->layouts) : NULL;
}

static PyMethodDef composer_methods[] = {
    {"add_part", composer_add_part, METH_VARARGS,
     "Add transactions, messages, account states and traces, as Arrow streams, of accounts after "
     "those added before; return their records."},
    {"end", composer_end, METH_O, "Add the complete traces that end in the segment; this is last."},
    {"copy", composer_copy, METH_O, "Return an array of the segment by its name."},
    {"postings", composer_postings, METH_O, "Return the columns of postings by their name."},
    {"shapes", composer_shapes, METH_NOARGS,
     "Return the shapes, each its kind, codes and constants, and the numbered hashes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot composer_slots[] = {
    {Py_tp_doc, (void *)"A segment being composed: kinds of rows, most bytes that are remembered, "
                        "most hashes that have numbers."},
    {Py_tp_new, (void *)composer_new},
    {Py_tp_dealloc, (void *)composer_dealloc},
    {Py_tp_methods, composer_methods},
    {0, NULL},
};

PyType_Spec composer_spec = {
    .name = "tonlake.lake.index._rows.Composer",
    .basicsize = sizeof(Composer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = composer_slots,
};
