#include "pyrow.h"

/* A range of columns of a table. */
typedef struct {
    const char *first, *last;
} Range;

typedef struct {
    TableName name;
    const Range *ranges;
    size_t count;
} Choice;

static const Range TRANSACTION_RANGES[] = {
    {"account", "hash"},
    {"now", "now"},
    {"prev_trans_hash", "bounce_fwd_fees"},
    {"recipe", "recipe"},
};
static const Range MESSAGE_RANGES[] = {
    {"kind", "import_fee"}, {"body", "body"}, {"init_state", "init_state"}};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
static const Choice OF_TRANSACTION = {TABLE_transactions, TRANSACTION_RANGES,
                                      COUNT_OF(TRANSACTION_RANGES)};
static const Choice OF_MESSAGE = {TABLE_messages, MESSAGE_RANGES, COUNT_OF(MESSAGE_RANGES)};

/* Iterates over the columns of a choice. */
typedef struct {
    const Choice *choice;
    size_t column, range;
    bool is_within;
} Columns;

/* Step to the next column; NULL at the end. */
static const Column *next_column(Columns *at)
{
    const Layout *layout = &LAYOUTS[at->choice->name];
    while (at->column < layout->column_count && at->range < at->choice->count) {
        const Column *column = &layout->columns[at->column++];
        const Range *range = &at->choice->ranges[at->range];
        at->is_within |= strcmp(column->name, range->first) == 0;
        if (!at->is_within)
            continue;
        if (strcmp(column->name, range->last) == 0) {
            at->is_within = false;
            at->range++;
        }
        return column;
    }
    return NULL;
}

static bool read_bool(PyObject *value, void *to)
{
    const bool is_true = value == Py_True;
    memcpy(to, &is_true, sizeof is_true);
    return is_true || value == Py_False;
}

/* Read an integer of a given size in bytes. */
static bool read_number(PyObject *value, size_t size, void *to)
{
    int overflow = 0;
    if (!PyLong_CheckExact(value))
        return false;
    const int64_t wide = PyLong_AsLongLongAndOverflow(value, &overflow);
    const int32_t middle = (int32_t)wide;
    const int8_t small = (int8_t)wide;
    if (size == sizeof wide)
        memcpy(to, &wide, size);
    else if (size == sizeof middle)
        memcpy(to, &middle, size);
    else
        memcpy(to, &small, size);
    return !overflow && (size == sizeof wide || wide == (size == sizeof middle ? middle : small));
}

/* Read an amount below 2^63: larger ones hardly ever occur. */
static bool read_amount(PyObject *value, void *to)
{
    int64_t number = 0;
    bool fits = read_number(value, sizeof number, &number) && number >= 0;
    const Amount amount = {.low = (uint64_t)number};
    memcpy(to, &amount, sizeof amount);
    return fits;
}

static bool read_word(PyObject *value, void *to)
{
    Py_ssize_t size = 0;
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    if (!text) {
        PyErr_Clear(); /* lone surrogates */
        return false;
    }
    for (uint8_t word = 0; word < WORD_COUNT; word++)
        if (WORD_SIZES[word] == size && memcmp(WORDS[word], text, (size_t)size) == 0) {
            memcpy(to, &word, sizeof word);
            return true;
        }
    return false;
}

static Status read_bytes(PyObject *value, Kind kind, Heap *bytes, void *to)
{
    if (!PyBytes_CheckExact(value))
        return NOT_MINE;
    const char *data = PyBytes_AsString(value);
    size_t size = (size_t)PyBytes_Size(value);
    if (kind == KIND_hash && size == HASH_BYTES) {
        memcpy(to, data, size);
        return DONE;
    }
    if (kind != KIND_bytes || size > UINT32_MAX)
        return NOT_MINE;
    const Span span = {bytes->size, (uint32_t)size};
    memcpy(to, &span, sizeof span);
    return heap_append(bytes, data, size) ? DONE : NO_MEMORY;
}

static Status read_value(PyObject *value, const Column *column, uint8_t *row, Heap *bytes)
{
    void *to = row + column->value;
    const bool is_there = value != Py_None;
    bool fits = false;
    memcpy(row + column->presence, &is_there, sizeof is_there);
    if (!is_there)
        return DONE;
    switch (column->kind) {
    case KIND_bool:
        fits = read_bool(value, to);
        break;
    case KIND_int8:
        fits = read_number(value, sizeof(int8_t), to);
        break;
    case KIND_int32:
        fits = read_number(value, sizeof(int32_t), to);
        break;
    case KIND_int64:
        fits = read_number(value, sizeof(int64_t), to);
        break;
    case KIND_amount:
        fits = read_amount(value, to);
        break;
    case KIND_text:
        fits = read_word(value, to);
        break;
    case KIND_json: /* its content is not needed */
        fits = true;
        break;
    default:
        return read_bytes(value, column->kind, bytes, to);
    }
    return fits ? DONE : NOT_MINE;
}

/* Read a row, which is zeroed. */
static Status read_row(PyObject *values, const Choice *choice, void *row, Heap *bytes)
{
    Columns columns = {.choice = choice};
    Py_ssize_t at = 0, count = PyTuple_Check(values) ? PyTuple_Size(values) : 0;
    for (const Column *column; (column = next_column(&columns)); at++) {
        if (at >= count)
            return NOT_MINE;
        Status status = read_value(PyTuple_GetItem(values, at), column, row, bytes);
        if (status != DONE)
            return status;
    }
    return at == count ? DONE : NOT_MINE;
}

/* Read a transaction's row and the list of its messages' rows; NOT_MINE if a value does not fit its
   column. */
static Status read_input(PyObject *row, PyObject *messages, InputRows *to)
{
    *to = (InputRows){0};
    if (!PyTuple_Check(messages))
        return NOT_MINE;
    to->count = (size_t)PyTuple_Size(messages);
    to->messages = calloc(to->count + 1, sizeof *to->messages);
    if (!to->messages || !heap_reserve(&to->bytes, 1))
        return NO_MEMORY;
    Status status = read_row(row, &OF_TRANSACTION, &to->row, &to->bytes);
    for (size_t i = 0; i < to->count && status == DONE; i++)
        status = read_row(PyTuple_GetItem(messages, (Py_ssize_t)i), &OF_MESSAGE, &to->messages[i],
                          &to->bytes);
    return status;
}

static void input_free(InputRows *rows)
{
    free(rows->messages);
    heap_free(&rows->bytes);
}

static PyObject *list_columns(const Choice *choice)
{
    Columns columns = {.choice = choice};
    PyObject *names = PyList_New(0);
    for (const Column *column; names && (column = next_column(&columns));) {
        PyObject *name = PyUnicode_FromString(column->name);
        if (!name || PyList_Append(names, name) != 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

PyObject *list_rebuild_columns(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    return Py_BuildValue("NN", list_columns(&OF_TRANSACTION), list_columns(&OF_MESSAGE));
}

PyObject *rebuild_from_rows(PyObject *args, const Sha256 *sha)
{
    PyObject *row, *messages, *result = NULL;
    unsigned long long seed;
    InputRows rows;
    Heap bag = {0};
    if (!PyArg_ParseTuple(args, "OOK", &row, &messages, &seed))
        return NULL;
    /* The GIL is held: getting it back may take longer than all of this. */
    Status status = read_input(row, messages, &rows);
    if (status == DONE)
        status = rebuild_bag(&rows, sha, seed, &bag);
    if (status == DONE)
        result = PyBytes_FromStringAndSize((const char *)bag.data, (Py_ssize_t)bag.size);
    else if (status == NOT_MINE)
        result = Py_BuildValue("");
    else
        PyErr_NoMemory();
    heap_free(&bag);
    input_free(&rows);
    return result;
}
