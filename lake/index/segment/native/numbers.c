/* Packed numbers, written and read: what module tonlake.lake.index.segment.file does in Python. */
#include "numbers.h"

#include <structmember.h>

#define HEAD_BYTES 24
#define PADDING_BYTES 8
#define WIDEST 57
#define WORD 64
#define MOST ((uint64_t)1 << 32)
#define ROUNDS 2
#define FEW 64

bool open_packed(const Py_buffer *view, Packed *packed)
{
    uint64_t count, room = (uint64_t)view->len - HEAD_BYTES - PADDING_BYTES;
    const uint8_t *head = view->buf;
    if (view->len < HEAD_BYTES + PADDING_BYTES) {
        PyErr_SetString(PyExc_ValueError, "packed numbers end too early");
        return false;
    }
    memcpy(&packed->least, head, sizeof packed->least);
    memcpy(&count, head + 8, sizeof count);
    packed->bits = head[16];
    packed->cut_bits = head[17];
    packed->count = (int64_t)count;
    packed->data = head + HEAD_BYTES;
    if ((packed->bits > WIDEST && packed->bits != WORD) || packed->cut_bits >= WORD ||
        count > MOST || count * packed->bits > room * 8) {
        PyErr_SetString(PyExc_ValueError, "packed numbers are damaged");
        return false;
    }
    return true;
}

/* Sorted numbers, those before low less than what is looked for, those from high on not. */
typedef struct {
    int64_t low, high;
} Bounds;

static void probe(const Packed *packed, int64_t cut, int64_t at, Bounds *bounds)
{
    if (at < bounds->low || at >= bounds->high)
        return;
    if (packed_at(packed, at) < cut)
        bounds->low = at + 1;
    else
        bounds->high = at;
}

/* Look where a number would stand if they were spread evenly, as hashes are, and a little beside:
   a few places in memory are read where halving reads twenty. */
static void narrow(const Packed *packed, int64_t cut, Bounds *bounds)
{
    int64_t count = bounds->high - bounds->low, beside = 1;
    int64_t first = packed_at(packed, bounds->low), last = packed_at(packed, bounds->high - 1);
    if (cut <= first || cut > last)
        return;
    double share = ((double)cut - (double)first) / ((double)last - (double)first);
    int64_t middle = bounds->low + (int64_t)(share * (double)(count - 1));
    while (beside * beside < count)
        beside *= 2;
    probe(packed, cut, middle - beside, bounds);
    probe(packed, cut, middle + beside, bounds);
}

int64_t find_packed(const Packed *packed, uint64_t key)
{
    int64_t cut = (int64_t)(key >> packed->cut_bits);
    Bounds bounds = {0, packed->count};
    for (int round = 0; round < ROUNDS && bounds.high - bounds.low > FEW; round++)
        narrow(packed, cut, &bounds);
    while (bounds.low < bounds.high)
        probe(packed, cut, bounds.low + (bounds.high - bounds.low) / 2, &bounds);
    return bounds.low < packed->count && packed_at(packed, bounds.low) == cut ? bounds.low : -1;
}

static unsigned count_bits(uint64_t value)
{
    unsigned bits = 0;
    for (; value; value >>= 1)
        bits++;
    return bits <= WIDEST ? bits : WORD;
}

/* Write what each number is above the least; out has zeroes. */
static void write_packed(uint8_t *out, const int64_t *values, Py_ssize_t count, int64_t least,
                         unsigned bits)
{
    for (Py_ssize_t at = 0; at < count; at++) {
        uint64_t bit = (uint64_t)at * bits, word;
        memcpy(&word, out + bit / 8, sizeof word);
        word |= ((uint64_t)values[at] - (uint64_t)least) << bit % 8;
        memcpy(out + bit / 8, &word, sizeof word);
    }
}

PyObject *pack_numbers(PyObject *self, PyObject *args)
{
    Py_buffer view;
    unsigned char cut_bits = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*|b:pack_numbers", &view, &cut_bits))
        return NULL;
    const int64_t *values = view.buf;
    Py_ssize_t count = view.len / 8;
    int64_t least = count ? values[0] : 0, most = least;
    for (Py_ssize_t at = 1; at < count; at++) {
        least = values[at] < least ? values[at] : least;
        most = values[at] > most ? values[at] : most;
    }
    unsigned bits = count_bits((uint64_t)most - (uint64_t)least);
    uint64_t size = ((uint64_t)count * bits + 7) / 8 + HEAD_BYTES + PADDING_BYTES;
    PyObject *packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (packed) {
        uint8_t *out = (uint8_t *)PyBytes_AsString(packed);
        uint64_t head = (uint64_t)count;
        memset(out, 0, size);
        memcpy(out, &least, sizeof least);
        memcpy(out + 8, &head, sizeof head);
        out[16] = (uint8_t)bits;
        out[17] = cut_bits;
        write_packed(out + HEAD_BYTES, values, count, least, bits);
    }
    PyBuffer_Release(&view);
    return packed;
}

/* The Python type: a sequence over packed bytes. */
typedef struct {
    PyObject_HEAD
    Py_buffer view;
    PyObject *data;
    Packed packed;
} Numbers;

static PyObject *numbers_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *data;
    (void)names;
    if (!PyArg_ParseTuple(args, "O:Numbers", &data))
        return NULL;
    Numbers *numbers = PyObject_New(Numbers, type);
    if (!numbers)
        return NULL;
    memset((char *)numbers + sizeof(PyObject), 0, sizeof *numbers - sizeof(PyObject));
    if (PyObject_GetBuffer(data, &numbers->view, PyBUF_SIMPLE) < 0 ||
        !open_packed(&numbers->view, &numbers->packed)) {
        Py_DECREF(numbers);
        return NULL;
    }
    numbers->data = Py_NewRef(data);
    return (PyObject *)numbers;
}

static void numbers_dealloc(PyObject *self)
{
    Numbers *numbers = (Numbers *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (numbers->view.obj)
        PyBuffer_Release(&numbers->view);
    Py_XDECREF(numbers->data);
    PyObject_Free(self);
    Py_DECREF(type);
}

static Py_ssize_t numbers_length(PyObject *self)
{
    return (Py_ssize_t)((Numbers *)self)->packed.count;
}

static PyObject *numbers_item(PyObject *self, Py_ssize_t at)
{
    const Packed *packed = &((Numbers *)self)->packed;
    if (at < 0 || at >= packed->count) {
        PyErr_SetString(PyExc_IndexError, "a place is outside of its array");
        return NULL;
    }
    return PyLong_FromLongLong(packed_at(packed, at));
}

static PyObject *numbers_subscript(PyObject *self, PyObject *key)
{
    const Packed *packed = &((Numbers *)self)->packed;
    Py_ssize_t start, stop, step;
    if (!PySlice_Check(key)) {
        Py_ssize_t at = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (at == -1 && PyErr_Occurred())
            return NULL;
        return numbers_item(self, at < 0 ? at + (Py_ssize_t)packed->count : at);
    }
    if (PySlice_Unpack(key, &start, &stop, &step) < 0)
        return NULL;
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)packed->count, &start, &stop, step);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t at = 0; found && at < count; at++, start += step) {
        PyObject *number = PyLong_FromLongLong(packed_at(packed, start));
        if (!number || PyList_SetItem(found, at, number) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *numbers_find(PyObject *self, PyObject *key)
{
    unsigned long long number = PyLong_AsUnsignedLongLong(key);
    if (PyErr_Occurred())
        return NULL;
    return PyLong_FromLongLong(find_packed(&((Numbers *)self)->packed, number));
}

/* Take two places, between which the numbers must lie. */
static bool check_places(const Packed *packed, long long start, long long end)
{
    if (start >= 0 && start <= end && end <= packed->count)
        return true;
    PyErr_SetString(PyExc_IndexError, "a place is outside of its array");
    return false;
}

static PyObject *numbers_list_between(PyObject *self, PyObject *args)
{
    const Packed *packed = &((Numbers *)self)->packed;
    long long start, end, low, high;
    if (!PyArg_ParseTuple(args, "LLLL:list_between", &start, &end, &low, &high) ||
        !check_places(packed, start, end))
        return NULL;
    PyObject *found = PyList_New(0);
    for (int64_t at = start; found && at < end; at++) {
        int64_t number = packed_at(packed, at);
        if (number < low || number >= high)
            continue;
        PyObject *place = PyLong_FromLongLong(at);
        if (!place || PyList_Append(found, place) < 0)
            Py_CLEAR(found);
        Py_XDECREF(place);
    }
    return found;
}

static PyObject *numbers_cut_bits(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong((long)((Numbers *)self)->packed.cut_bits);
}

static PyMethodDef numbers_methods[] = {
    {"find", numbers_find, METH_O,
     "Return the first place of a number among sorted ones, or -1; its low bits are cut off."},
    {"list_between", numbers_list_between, METH_VARARGS,
     "Return the places from a first one to before a last one whose numbers are from a least one to "
     "below a greatest one."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef numbers_members[] = {
    {"data", T_OBJECT, offsetof(Numbers, data), READONLY, "The bytes."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef numbers_properties[] = {
    {"cut_bits", numbers_cut_bits, NULL, "Low bits that were cut off.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot numbers_slots[] = {
    {Py_tp_doc, (void *)"Packed numbers of a segment."},
    {Py_tp_new, (void *)numbers_new},
    {Py_tp_dealloc, (void *)numbers_dealloc},
    {Py_tp_methods, numbers_methods},
    {Py_tp_members, numbers_members},
    {Py_tp_getset, numbers_properties},
    {Py_sq_length, (void *)numbers_length},
    {Py_sq_item, (void *)numbers_item},
    {Py_mp_length, (void *)numbers_length},
    {Py_mp_subscript, (void *)numbers_subscript},
    {0, NULL},
};

PyType_Spec numbers_spec = {
    .name = "tonlake.lake.index._rows.Numbers",
    .basicsize = sizeof(Numbers),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = numbers_slots,
};
