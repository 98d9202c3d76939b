/* Writes the address book: raw and friendly address, domain and interfaces of each account. */
#include "address.h"
#include "buffer.h"
#include "module.h"

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

static int add_rows(Buffer *out, PyObject *pairs, PyObject *facts, PyObject *domains)
{
    for (Py_ssize_t at = 0; at < PyList_Size(pairs); at++) {
        PyObject *pair = PyList_GetItem(pairs, at), *own = PyList_GetItem(facts, at);
        if (!pair || !own)
            return -1;
        if (!PyTuple_Check(pair) || !PyTuple_Check(own)) {
            PyErr_SetString(PyExc_TypeError, "accounts and their facts are pairs");
            return -1;
        }
        if ((at && add_literal(out, ",") < 0) || add_row(out, pair, own, domains) < 0)
            return -1;
    }
    return 0;
}

PyObject *write_book(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *pairs, *facts, *domains, *text = NULL;
    if (!PyArg_ParseTuple(args, "O!O!O!:write_book", &PyList_Type, &pairs, &PyList_Type, &facts,
                          &PyDict_Type, &domains))
        return NULL;
    Buffer out = {0};
    if (add_literal(&out, "{") == 0 && add_rows(&out, pairs, facts, domains) == 0 &&
        add_literal(&out, "}") == 0)
        text = PyBytes_FromStringAndSize(out.data, (Py_ssize_t)out.size);
    buffer_free(&out);
    return text;
}
