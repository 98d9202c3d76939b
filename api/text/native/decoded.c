/* Names of opcodes and decoded bodies, which are cached by the hash of the body. */
#include "decoded.h"

#include "body.h"

int equals_text(Field *field, PyObject *row)
{
    Value beside;
    if (read_column(row, &field->beside, 0, &beside) < 0)
        return -1;
    int equal = equals_object(&beside, field->equals);
    drop_value(&beside);
    return equal;
}

enum { NAME, CONTENT, BODY_BYTES, MAY_FOLLOW, WRITTEN };

/* Return the cached result for a body with the same hash, bytes and kind (new reference), or NULL,
 * with or without an error set. */
static PyObject *find_written(Field *field, PyObject *row, const Value *bag, int may_follow)
{
    Value hash;
    if (read_column(row, &field->body_hash, 0, &hash) < 0)
        return NULL;
    PyObject *key = make_object(&hash);
    drop_value(&hash);
    PyObject *written = key ? PyDict_GetItemWithError(field->kept, key) : NULL;
    Py_XDECREF(key);
    if (!written || !PyTuple_Check(written) || PyTuple_Size(written) != WRITTEN)
        return NULL;
    Value body = lend_object(PyTuple_GetItem(written, BODY_BYTES));
    int same = equals_value(&body, bag);
    if (same > 0 && (PyTuple_GetItem(written, MAY_FOLLOW) == Py_True) == may_follow)
        return Py_NewRef(written);
    return NULL;
}

/* Add the opcode name of a decoded body; keep its JSON for add_body. */
static int take_written(Writer *writer, PyObject *written)
{
    if (!PyTuple_Check(written) || PyTuple_Size(written) != WRITTEN) {
        PyErr_SetString(PyExc_TypeError, "a written body is a tuple (name, content, body, may_follow)");
        return -1;
    }
    PyObject *body = PyTuple_GetItem(written, CONTENT);
    if (!PyBytes_Check(body)) {
        PyErr_SetString(PyExc_TypeError, "a body is written as bytes");
        return -1;
    }
    writer->body = Py_NewRef(body);
    return buffer_add_json(&writer->out, PyTuple_GetItem(written, NAME));
}

/* Add the name of a body's opcode, decoding the body unless its opcode is unknown. */
static int add_decoded_name(Writer *writer, Field *field, PyObject *row, const Value *bag,
                            int may_follow)
{
    int is_unknown = may_follow ? 0 : is_unknown_body(bag, field->known);
    if (is_unknown)
        return is_unknown < 0 ? -1 : buffer_add(&writer->out, "null", 4);
    PyObject *written = find_written(field, row, bag, may_follow);
    if (!written && !PyErr_Occurred())
        written = PyObject_CallFunctionObjArgs(field->decode, row, NULL);
    int failed = written ? take_written(writer, written) : -1;
    Py_XDECREF(written);
    return failed;
}

int add_opcode_name(Writer *writer, Field *field, PyObject *row)
{
    Py_CLEAR(writer->body);
    Value bag;
    int may_follow = equals_text(field, row);
    if (may_follow < 0 || read_column(row, field->columns, 0, &bag) < 0)
        return -1;
    int failed = add_decoded_name(writer, field, row, &bag, may_follow);
    drop_value(&bag);
    return failed;
}
