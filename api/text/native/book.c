/* Writes the address book: raw and friendly address, domain and interfaces of each account. */
#include "book.h"

#include "address.h"
#include "buffer.h"
#include "layout.h"

static int add_literal(Buffer *out, const char *text)
{
    return buffer_add(out, text, strlen(text));
}

static int add_address(Buffer *out, long long workchain, const uint8_t *account, int tag)
{
    if (add_literal(out, "\"") < 0 || buffer_add_number(out, workchain) < 0 ||
        add_literal(out, ":") < 0 || buffer_add_hex(out, account, ACCOUNT_BYTES) < 0 ||
        add_literal(out, "\":{\"user_friendly\":") < 0)
        return -1;
    if (!has_friendly(workchain))
        return add_literal(out, "null");
    char text[FRIENDLY_CHARS];
    format_friendly(text, tag, (int)workchain, account);
    if (add_literal(out, "\"") < 0 || buffer_add(out, text, FRIENDLY_CHARS) < 0)
        return -1;
    return add_literal(out, "\"");
}

/* Input of the address book. */
typedef struct {
    PyObject *states;  /* list: newest row of each account, or None */
    PyObject *facts;   /* pair (tag byte, JSON of interfaces) by code hash; None: no code */
    PyObject *unknown; /* the same pair for accounts without a row */
    PyObject *domains; /* JSON by pair (workchain, account) */
    Column code_hash;
} Known;

/* Return the pair (tag, interfaces) of an account; a borrowed reference. */
static PyObject *find_facts(Known *known, Py_ssize_t at)
{
    PyObject *state = PyList_GetItem(known->states, at), *facts = known->unknown;
    if (state && state != Py_None) {
        Value value;
        if (read_column(state, &known->code_hash, 0, &value) < 0)
            return NULL;
        PyObject *hash = make_object(&value);
        drop_value(&value);
        facts = hash ? PyDict_GetItemWithError(known->facts, hash) : NULL;
        if (hash && !facts && !PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, hash);
        Py_XDECREF(hash);
    }
    if (state && facts && !PyTuple_Check(facts)) {
        PyErr_SetString(PyExc_TypeError, "facts are pairs");
        return NULL;
    }
    return state ? facts : NULL;
}

/* Write one row of the address book. */
static int add_row(Buffer *out, PyObject *pair, PyObject *facts, PyObject *domains)
{
    long long workchain;
    const char *account;
    Py_ssize_t size;
    int tag;
    PyObject *interfaces;
    if (!PyArg_ParseTuple(pair, "Ly#:account", &workchain, &account, &size) ||
        !PyArg_ParseTuple(facts, "iO:facts", &tag, &interfaces))
        return -1;
    if (size != ACCOUNT_BYTES) {
        PyErr_Format(PyExc_ValueError, "an account id has %d bytes, not %zd", ACCOUNT_BYTES, size);
        return -1;
    }
    PyObject *domain = PyDict_GetItemWithError(domains, pair);
    if (!domain && PyErr_Occurred())
        return -1;
    if (add_address(out, workchain, (const uint8_t *)account, tag) < 0 ||
        add_literal(out, ",\"domain\":") < 0)
        return -1;
    if ((domain ? buffer_add_json(out, domain) : add_literal(out, "null")) < 0 ||
        add_literal(out, ",\"interfaces\":") < 0 || buffer_add_json(out, interfaces) < 0)
        return -1;
    return add_literal(out, "}");
}

static int add_rows(Buffer *out, PyObject *pairs, Known *known)
{
    for (Py_ssize_t at = 0; at < PyList_Size(pairs); at++) {
        PyObject *pair = PyList_GetItem(pairs, at), *facts = find_facts(known, at);
        if (!pair || !facts)
            return -1;
        if (!PyTuple_Check(pair)) {
            PyErr_SetString(PyExc_TypeError, "accounts are pairs");
            return -1;
        }
        if ((at && add_literal(out, ",") < 0) || add_row(out, pair, facts, known->domains) < 0)
            return -1;
    }
    return 0;
}

PyObject *write_book(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *pairs, *text = NULL;
    Known known = {0};
    if (!PyArg_ParseTuple(args, "O!O!O!OO!:write_book", &PyList_Type, &pairs, &PyList_Type,
                          &known.states, &PyDict_Type, &known.facts, &known.unknown, &PyDict_Type,
                          &known.domains))
        return NULL;
    if (PyList_Size(pairs) != PyList_Size(known.states))
        return PyErr_Format(PyExc_ValueError, "the numbers of accounts and states differ");
    known.code_hash.name = PyUnicode_InternFromString("code_hash");
    Buffer out = {0};
    if (known.code_hash.name && add_literal(&out, "{") == 0 && add_rows(&out, pairs, &known) == 0 &&
        add_literal(&out, "}") == 0)
        text = PyBytes_FromStringAndSize(out.data, (Py_ssize_t)out.size);
    buffer_free(&out);
    drop_column(&known.code_hash);
    return text;
}
