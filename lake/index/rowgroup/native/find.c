/* Finds the rows of a column within a bound. */
#include "find.h"

static bool take_span(Span *span, const Column *column, PyObject *value)
{
    Py_ssize_t size;
    char *data = NULL;
    if (column->kind == TEXT)
        span->data = (const uint8_t *)PyUnicode_AsUTF8AndSize(value, &size);
    else
        span->data = PyBytes_AsStringAndSize(value, &data, &size) < 0 ? NULL : (uint8_t *)data;
    span->size = size;
    return span->data;
}

static bool take_values(Bound *bound, const Column *column, PyObject *values)
{
    for (Py_ssize_t at = 0; at < bound->count; at++) {
        PyObject *value = PyList_GetItem(values, at);
        if (bound->numbers) {
            bound->numbers[at] = PyLong_AsLongLong(value);
            if (bound->numbers[at] == -1 && PyErr_Occurred())
                return false;
            continue;
        }
        if (!take_span(&bound->spans[at], column, value))
            return false;
        uint8_t first = bound->spans[at].size ? bound->spans[at].data[0] : 0;
        bound->begins[first >> 6] |= (uint64_t)1 << (first & 63);
    }
    return true;
}

bool open_bound(Bound *bound, const Column *column, PyObject *values, bool is_range)
{
    size_t count = (size_t)PyList_Size(values);
    *bound = (Bound){.is_range = is_range, .count = (Py_ssize_t)count};
    if (column->kind == LIST || column->kind == OTHER || (is_range && count != 2)) {
        PyErr_SetString(PyExc_TypeError, "a column of this type has no bounds");
        return false;
    }
    if (column->kind == FLAG || column->kind == NUMBER)
        bound->numbers = PyMem_Calloc(count + 1, sizeof *bound->numbers);
    else
        bound->spans = PyMem_Calloc(count + 1, sizeof *bound->spans);
    if (!bound->numbers && !bound->spans) {
        PyErr_NoMemory();
        return false;
    }
    return take_values(bound, column, values);
}

void close_bound(Bound *bound)
{
    PyMem_Free(bound->numbers);
    PyMem_Free(bound->spans);
}

static int compare(Span one, Span other)
{
    int64_t size = one.size < other.size ? one.size : other.size;
    int found = size ? memcmp(one.data, other.data, (size_t)size) : 0;
    return found ? found : (one.size > other.size) - (one.size < other.size);
}

static bool has_number(const Bound *bound, int64_t number)
{
    Py_ssize_t low = 0, high = bound->count;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (bound->numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < bound->count && bound->numbers[low] == number;
}

static bool has_span(const Bound *bound, Span span)
{
    uint8_t first = span.size ? span.data[0] : 0;
    if (!(bound->begins[first >> 6] >> (first & 63) & 1))
        return false;
    Py_ssize_t low = 0, high = bound->count;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        int order = compare(bound->spans[middle], span);
        if (!order)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool fits(const Column *column, const Bound *bound, int64_t at)
{
    if (!is_there(column, at))
        return false;
    if (bound->numbers) {
        int64_t number = column->kind == FLAG ? flag_at(column, at) : number_at(column, at);
        if (bound->is_range)
            return bound->numbers[0] <= number && number <= bound->numbers[1];
        return has_number(bound, number);
    }
    Span span = span_at(column, at);
    if (bound->is_range)
        return compare(bound->spans[0], span) <= 0 && compare(span, bound->spans[1]) <= 0;
    return has_span(bound, span);
}
