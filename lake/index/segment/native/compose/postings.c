/* Postings as they are written: see module tonlake.lake.index.segment.postings. */
#include "sort.h"
#include "words.h"

enum { MAX_COLUMNS = 8, KEY_BITS = 64 };

#define SIGN ((uint64_t)1 << 63)

/* A column: 64-bit numbers, signed (q) or not (Q), or 32-bit ones (I). */
typedef struct {
    Py_buffer view;
    char code;
} Words;

typedef struct {
    Words columns[MAX_COLUMNS];
    int count;
    size_t rows;
    unsigned cut_bits;
} Listed;

PyObject *hand_over(Growing *growing, char code)
{
    PyObject *bytes = growing->failed ? PyErr_NoMemory()
                                      : PyBytes_FromStringAndSize((const char *)growing->data,
                                                                  (Py_ssize_t)growing->size);
    free_growing(growing);
    PyObject *view = bytes ? PyMemoryView_FromObject(bytes) : NULL;
    Py_XDECREF(bytes);
    if (!view || code == 'B')
        return view;
    PyObject *words = PyObject_CallMethod(view, "cast", "C", code);
    Py_DECREF(view);
    return words;
}

/* The number at a row, as unsigned, in the same order. */
static inline uint64_t rank_at(const Words *words, size_t row)
{
    const uint8_t *data = words->view.buf;
    uint64_t word;
    uint32_t half;
    if (words->code == 'I') {
        memcpy(&half, data + row * sizeof half, sizeof half);
        return half;
    }
    memcpy(&word, data + row * sizeof word, sizeof word);
    return words->code == 'q' ? word ^ SIGN : word;
}

static inline int64_t number_at(const Words *words, size_t row)
{
    uint64_t rank = rank_at(words, row);
    return (int64_t)(words->code == 'q' ? rank ^ SIGN : rank);
}

static bool open_words(PyObject *object, Words *words, size_t *rows)
{
    if (PyObject_GetBuffer(object, &words->view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
        return false;
    const char *format = words->view.format;
    words->code = format && format[0] && !format[1] ? format[0] : 0;
    Py_ssize_t width = words->code == 'I' ? 4 : 8;
    if ((words->code != 'I' && words->code != 'q' && words->code != 'Q') ||
        words->view.itemsize != width) {
        PyBuffer_Release(&words->view);
        PyErr_SetString(PyExc_ValueError, "a column needs items of code Q, q or I");
        return false;
    }
    *rows = (size_t)(words->view.len / width);
    return true;
}

static void close_listed(Listed *listed)
{
    while (listed->count)
        PyBuffer_Release(&listed->columns[--listed->count].view);
}

static bool open_listed(PyObject *columns, Listed *listed)
{
    Py_ssize_t count = PyTuple_Size(columns);
    bool fits = count > 0 && count <= MAX_COLUMNS && listed->cut_bits < KEY_BITS;
    for (Py_ssize_t at = 0; fits && at < count; at++) {
        size_t rows;
        if (!open_words(PyTuple_GetItem(columns, at), &listed->columns[at], &rows)) {
            close_listed(listed);
            return false;
        }
        listed->count++;
        fits = at ? rows == listed->rows : rows <= UINT32_MAX && listed->columns[0].code == 'Q';
        listed->rows = rows;
    }
    if (!fits) {
        close_listed(listed);
        PyErr_SetString(PyExc_ValueError, "postings need columns of equal length, the key first");
    }
    return fits;
}

static int compare_rows(const void *context, uint32_t first, uint32_t second)
{
    const Listed *listed = context;
    for (int at = 1; at < listed->count; at++) {
        uint64_t left = rank_at(&listed->columns[at], first);
        uint64_t right = rank_at(&listed->columns[at], second);
        if (left != right)
            return left < right ? -1 : 1;
    }
    return 0;
}

static Keyed *sort_rows(const Listed *listed)
{
    Keyed *items = malloc((listed->rows + 1) * sizeof *items);
    if (!items)
        return NULL;
    for (size_t row = 0; row < listed->rows; row++)
        items[row] = (Keyed){rank_at(&listed->columns[0], row) >> listed->cut_bits, (uint32_t)row};
    if (sort_keyed(items, listed->rows, compare_rows, listed))
        return items;
    free(items);
    return NULL;
}

/* Drop rows that equal the previous one in the key and masked columns; return how many stay. */
static size_t drop_twins(const Listed *listed, Keyed *items, unsigned long unique)
{
    size_t kept = listed->rows ? 1 : 0;
    for (size_t at = 1; at < listed->rows; at++) {
        const Keyed *before = &items[kept - 1];
        bool same = items[at].key == before->key;
        for (int column = 1; same && column < listed->count; column++)
            same = !(unique >> column & 1) || rank_at(&listed->columns[column], items[at].at) ==
                                                  rank_at(&listed->columns[column], before->at);
        if (!same)
            items[kept++] = items[at];
    }
    return kept;
}

/* Append the truncated keys, or the numbers of another column. */
static void append_column(const Listed *listed, const Keyed *items, size_t count, int column,
                          Growing *out)
{
    if (!grow(out, count * sizeof(uint64_t)))
        return;
    for (size_t at = 0; at < count; at++)
        append_word(out, column ? (uint64_t)number_at(&listed->columns[column], items[at].at)
                                : items[at].key);
}

PyObject *list_postings(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *columns, *kept;
    unsigned long unique;
    Listed listed = {.count = 0};
    if (!PyArg_ParseTuple(args, "O!IkO!:list_postings", &PyTuple_Type, &columns, &listed.cut_bits,
                          &unique, &PyTuple_Type, &kept) ||
        !open_listed(columns, &listed))
        return NULL;
    Keyed *items;
    size_t count = 0;
    Py_BEGIN_ALLOW_THREADS
    items = sort_rows(&listed);
    if (items)
        count = drop_twins(&listed, items, unique);
    Py_END_ALLOW_THREADS
    Py_ssize_t wanted = PyTuple_Size(kept);
    PyObject *found = items ? PyTuple_New(wanted) : PyErr_NoMemory();
    for (Py_ssize_t at = 0; found && at < wanted; at++) {
        long column = PyLong_AsLong(PyTuple_GetItem(kept, at));
        Growing out = {0};
        if (column < 0 || column >= listed.count) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "postings have no such column");
            Py_CLEAR(found);
            break;
        }
        append_column(&listed, items, count, (int)column, &out);
        PyObject *words = hand_over(&out, 'q');
        if (!words || PyTuple_SetItem(found, at, words) < 0)
            Py_CLEAR(found);
    }
    free(items);
    close_listed(&listed);
    return found;
}

PyObject *group_keys(PyObject *self, PyObject *keys)
{
    (void)self;
    Words words;
    size_t rows;
    if (!open_words(keys, &words, &rows))
        return NULL;
    Growing each = {0}, ends = {0};
    for (size_t row = 0; row < rows; row++)
        if (row + 1 == rows || rank_at(&words, row) != rank_at(&words, row + 1)) {
            append_word(&each, (uint64_t)number_at(&words, row));
            append_word(&ends, row + 1);
        }
    PyBuffer_Release(&words.view);
    PyObject *keys_once = hand_over(&each, 'q'), *where = hand_over(&ends, 'q');
    PyObject *found = keys_once && where ? PyTuple_Pack(2, keys_once, where) : NULL;
    Py_XDECREF(keys_once);
    Py_XDECREF(where);
    return found;
}

PyObject *cut_keys(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *keys;
    unsigned cut_bits;
    Words words;
    size_t rows;
    if (!PyArg_ParseTuple(args, "OI:cut_keys", &keys, &cut_bits) ||
        !open_words(keys, &words, &rows))
        return NULL;
    Growing cut = {0};
    for (size_t row = 0; row < rows && cut_bits < KEY_BITS; row++)
        append_word(&cut, (uint64_t)number_at(&words, row) >> cut_bits);
    PyBuffer_Release(&words.view);
    return hand_over(&cut, 'q');
}

PyObject *count_equal_bits(PyObject *self, PyObject *keys)
{
    (void)self;
    Listed listed = {.count = 0};
    PyObject *columns = PyTuple_Pack(1, keys);
    bool is_open = columns && open_listed(columns, &listed);
    Py_XDECREF(columns);
    if (!is_open)
        return NULL;
    uint64_t least = 0;
    Keyed *items;
    Py_BEGIN_ALLOW_THREADS
    items = sort_rows(&listed);
    for (size_t at = 1; items && at < listed.rows; at++) {
        uint64_t differ = items[at].key ^ items[at - 1].key;
        if (differ && (!least || differ < least))
            least = differ;
    }
    Py_END_ALLOW_THREADS
    close_listed(&listed);
    if (!items)
        return PyErr_NoMemory();
    free(items);
    long bits = least ? -1 : KEY_BITS;
    for (; least; least >>= 1)
        bits++;
    return PyLong_FromLong(bits);
}
