/* Values of rows as a segment stores them. A Python object is created when Python reads the column;
   the JSON writer (api/text/native) reads values directly. */
#ifndef TONLAKE_HELD_H
#define TONLAKE_HELD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Content of a value: None, a borrowed or an owned object, a number, bytes, UTF-8, or the decimal
   digits of a number. Bytes are valid as long as the row. */
typedef enum { IS_NONE, IS_LENT, IS_OWNED, IS_NUMBER, IS_BYTES, IS_TEXT, IS_DIGITS } Form;

typedef struct {
    union {
        PyObject *object;
        const uint8_t *data;
        int64_t number;
    };
    uint32_t size; /* of bytes, text and digits */
    Form form;
} Value;

static inline bool is_object(const Value *value)
{
    return value->form == IS_LENT || value->form == IS_OWNED;
}

static inline Value lend_object(PyObject *object)
{
    return (Value){.object = object, .form = object == Py_None ? IS_NONE : IS_LENT};
}

static inline Value own_object(PyObject *object)
{
    return (Value){.object = object, .form = IS_OWNED};
}

static inline Value number_value(int64_t number)
{
    return (Value){.number = number, .form = IS_NUMBER};
}

/* Return a value as a Python object (new reference). */
static inline PyObject *make_object(const Value *value)
{
    switch (value->form) {
    case IS_LENT:
    case IS_OWNED:
        return Py_NewRef(value->object);
    case IS_NUMBER:
        return PyLong_FromLongLong(value->number);
    case IS_BYTES:
        return PyBytes_FromStringAndSize((const char *)value->data, (Py_ssize_t)value->size);
    case IS_TEXT:
        return PyUnicode_DecodeUTF8((const char *)value->data, (Py_ssize_t)value->size, NULL);
    case IS_DIGITS: {
        PyObject *text =
            PyUnicode_DecodeUTF8((const char *)value->data, (Py_ssize_t)value->size, NULL);
        const char *digits = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
        PyObject *number = digits ? PyLong_FromString(digits, NULL, 10) : NULL;
        Py_XDECREF(text);
        return number;
    }
    default:
        return Py_NewRef(Py_None);
    }
}

/* Get the bytes of a value; fails if it has none. */
static inline bool find_held_bytes(const Value *value, const uint8_t **data, size_t *size)
{
    if (value->form == IS_BYTES) {
        *data = value->data;
        *size = value->size;
        return true;
    }
    char *text;
    Py_ssize_t length;
    if (!is_object(value)) {
        PyErr_SetString(PyExc_TypeError, "a column has no bytes");
        return false;
    }
    if (PyBytes_AsStringAndSize(value->object, &text, &length) < 0)
        return false;
    *data = (const uint8_t *)text;
    *size = (size_t)length;
    return true;
}

#endif
