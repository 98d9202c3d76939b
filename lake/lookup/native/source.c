/* Records of a run: transactions with their messages and the states around them. */
#include "rows.h"

enum { NO_STATE, SAME_STATE, SHAPED };

#define NO_TRACE UINT32_MAX

static uint32_t load_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static int64_t load_i64(const uint8_t *at)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void end_context(Context *context)
{
    Py_CLEAR(context->account);
    Py_CLEAR(context->workchain);
}

/* Take the account that a row belongs to: the rows of accounts stand one after the other. */
static bool take_account(Source *source, Context *context, int64_t row)
{
    const Py_buffer *view = &source->arrays[ACCOUNT_ROW];
    const uint8_t *rows = view->buf;
    int64_t low = 0, high = view->len / 4 - 1;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (load_u32(rows + 4 * middle) <= row)
            low = middle;
        else
            high = middle;
    }
    const uint8_t *id = item_at(source, ACCOUNT_ID, low, ACCOUNT_ID_BYTES);
    if (!id || !item_at(source, ACCOUNT_ROW, low + 1, 4))
        return false;
    end_context(context);
    context->first = load_u32(rows + 4 * low);
    context->last = load_u32(rows + 4 * (low + 1));
    const uint8_t *workchain = id + HASH_BYTES;
    uint32_t biased = (uint32_t)workchain[0] << 24 | workchain[1] << 16 | workchain[2] << 8 |
                      workchain[3];
    context->account = PyBytes_FromStringAndSize((const char *)id, HASH_BYTES);
    context->workchain = PyLong_FromLong((long)((int64_t)biased - (1LL << 31)));
    return context->account && context->workchain;
}

/* Go to a row: where its record begins and ends, and what its arrays say of it. */
static bool find_record(Source *source, Context *context, int64_t row, Cursor *cursor)
{
    const uint8_t *lt = item_at(source, LT, row, 8), *now = item_at(source, NOW, row, 4);
    if (!lt || !now)
        return false;
    int64_t block = row / source->records_per_block;
    const uint8_t *start = item_at(source, BLOCK_AT, block, 8);
    const uint8_t *stop = item_at(source, BLOCK_AT, block + 1, 8);
    if (!start || !stop)
        return false;
    const Py_buffer *records = &source->arrays[RECORDS];
    int64_t first = load_i64(start), last = load_i64(stop);
    if (first < 0 || last < first || last > records->len) {
        PyErr_SetString(PyExc_ValueError, "a block of the run is damaged");
        return false;
    }
    cursor->at = (const uint8_t *)records->buf + first;
    cursor->end = (const uint8_t *)records->buf + last;
    uint64_t size = 0;
    Cursor before = *cursor;
    for (int64_t at = block * source->records_per_block; at <= row; at++) {
        before = (Cursor){cursor->at, cursor->at + size};
        cursor->at += size;
        if (!read_number(cursor, &size))
            return false;
        if (size > (uint64_t)(cursor->end - cursor->at)) {
            PyErr_SetString(PyExc_ValueError, "a record of the run is longer than its block");
            return false;
        }
    }
    cursor->end = cursor->at + size;
    if ((row < context->first || row >= context->last) && !take_account(source, context, row))
        return false;
    context->row = row;
    context->before = row % source->records_per_block ? before : (Cursor){NULL, NULL};
    context->lt = load_i64(lt);
    context->now = load_u32(now);
    context->in_hash = NULL;
    return true;
}

/* Read a state or None; same tells that it is the one after the record before. */
static PyObject *read_state(Source *source, Cursor *cursor, Context *context, bool *same)
{
    Cursor ahead = *cursor;
    uint64_t form;
    if (!read_number(&ahead, &form))
        return NULL;
    if (form == NO_STATE || form == SAME_STATE) {
        *cursor = ahead;
        *same = form == SAME_STATE;
        return Py_NewRef(Py_None);
    }
    Shape *shape = read_shape(source, cursor, SHAPED, FACTS);
    return shape ? (PyObject *)read_row(source, cursor, context, shape) : NULL;
}

static bool skip_state(Source *source, Cursor *cursor)
{
    Cursor ahead = *cursor;
    uint64_t form;
    if (!read_number(&ahead, &form))
        return false;
    if (form < SHAPED) {
        *cursor = ahead;
        return true;
    }
    Shape *shape = read_shape(source, cursor, SHAPED, FACTS);
    return shape && skip_row(source, cursor, NULL, shape, NULL);
}

static PyObject *read_hash(Source *source, Array array, int64_t row)
{
    const uint8_t *data = item_at(source, array, row, HASH_BYTES);
    return data ? PyBytes_FromStringAndSize((const char *)data, HASH_BYTES) : NULL;
}

static PyObject *read_trace(Source *source, int64_t row)
{
    const uint8_t *at = item_at(source, ROOT, row, 4);
    if (!at)
        return NULL;
    uint32_t root = load_u32(at);
    if (root == NO_TRACE)
        return Py_NewRef(Py_None);
    if (root < source->rows)
        return read_hash(source, HASH, root);
    return read_hash(source, OTHER, (int64_t)NO_TRACE - 1 - root);
}

/* Fill what the arrays have: the columns behind those of the shape, as module record lists them. */
static bool fill_transaction(Source *source, Row *row, Py_ssize_t at, Context *context)
{
    const uint8_t *mc_seqno = item_at(source, MC_SEQNO, context->row, 4);
    if (!mc_seqno || at + 8 > row->count)
        return false;
    row->values[at] = Py_NewRef(context->workchain);
    row->values[at + 1] = Py_NewRef(context->account);
    row->values[at + 2] = PyLong_FromLongLong(context->lt);
    row->values[at + 3] = read_hash(source, HASH, context->row);
    row->values[at + 4] = PyLong_FromLongLong(context->now);
    row->values[at + 5] = PyLong_FromUnsignedLong(load_u32(mc_seqno));
    row->values[at + 6] = read_hash(source, HASH_AFTER, context->row);
    row->values[at + 7] = read_trace(source, context->row);
    for (Py_ssize_t place = at; place < at + 8; place++)
        if (!row->values[place])
            return false;
    return true;
}

static Row *read_message(Source *source, Cursor *cursor, Context *context, PyObject *hash,
                         PyObject *lt)
{
    Shape *shape = read_shape(source, cursor, 0, MESSAGE);
    Row *row = shape ? read_row(source, cursor, context, shape) : NULL;
    if (row && shape->count + 2 <= row->count) {
        row->values[shape->count] = Py_NewRef(hash);
        row->values[shape->count + 1] = Py_NewRef(lt);
    }
    return row;
}

/* Read the messages of a record, the number of which comes first. */
static PyObject *read_messages(Source *source, Cursor *cursor, Context *context, PyObject *hash,
                               PyObject *lt)
{
    uint64_t count;
    if (!read_number(cursor, &count))
        return NULL;
    if (count > (uint64_t)(cursor->end - cursor->at)) {
        PyErr_SetString(PyExc_ValueError, "a record of the run has too few messages");
        return NULL;
    }
    PyObject *messages = PyList_New((Py_ssize_t)count);
    for (uint64_t at = 0; messages && at < count; at++) {
        Row *message = read_message(source, cursor, context, hash, lt);
        if (!message || PyList_SetItem(messages, (Py_ssize_t)at, (PyObject *)message) < 0)
            Py_CLEAR(messages);
    }
    return messages;
}

/* Read a whole record: its row, messages, state before, state after. */
static PyObject *read_record(Source *source, Context *context, int64_t number)
{
    Cursor cursor, earlier;
    bool same = false, unused = false;
    if (!find_record(source, context, number, &cursor))
        return NULL;
    Row *record = new_row((PyTypeObject *)PyTuple_GetItem(source->types, KINDS), 4);
    if (!record)
        return NULL;
    record->values[3] = read_state(source, &cursor, context, &unused);
    record->values[2] = record->values[3] ? read_state(source, &cursor, context, &same) : NULL;
    Shape *shape = record->values[2] ? read_shape(source, &cursor, 0, TRANSACTION) : NULL;
    Row *row = shape ? read_row(source, &cursor, context, shape) : NULL;
    record->values[0] = (PyObject *)row;
    if (!row || !fill_transaction(source, row, shape->count, context))
        goto failed;
    PyObject **arrays = row->values + shape->count;
    context->in_hash = row->values[source->in_hash_at];
    record->values[1] = read_messages(source, &cursor, context, arrays[3], arrays[2]);
    context->in_hash = NULL;
    if (!record->values[1])
        goto failed;
    if (same) {
        earlier = context->before;
        if (!earlier.at && !find_record(source, context, number - 1, &earlier))
            goto failed;
        Py_DECREF(record->values[2]);
        record->values[2] = read_state(source, &earlier, context, &unused);
        if (!record->values[2])
            goto failed;
    }
    return (PyObject *)record;
failed:
    Py_DECREF(record);
    return NULL;
}

/* Go to the messages of a record: how many there are, and the hash of the in message (owned). */
static bool open_messages(Source *source, Context *context, int64_t number, Cursor *cursor,
                          PyObject **in_hash, uint64_t *count)
{
    if (!find_record(source, context, number, cursor) || !skip_state(source, cursor) ||
        !skip_state(source, cursor))
        return false;
    Shape *shape = read_shape(source, cursor, 0, TRANSACTION);
    return shape && skip_row(source, cursor, context, shape, in_hash) && read_number(cursor, count);
}

/* Read a message with what the arrays say of its transaction. */
static PyObject *read_own_message(Source *source, Cursor *cursor, Context *context,
                                  PyObject *in_hash)
{
    PyObject *hash = read_hash(source, HASH, context->row);
    PyObject *lt = PyLong_FromLongLong(context->lt);
    Row *message = NULL;
    context->in_hash = in_hash;
    if (hash && lt)
        message = read_message(source, cursor, context, hash, lt);
    context->in_hash = NULL;
    Py_XDECREF(hash);
    Py_XDECREF(lt);
    return (PyObject *)message;
}

static bool skip_message(Source *source, Cursor *cursor, Context *context)
{
    Shape *shape = read_shape(source, cursor, 0, MESSAGE);
    return shape && skip_row(source, cursor, context, shape, NULL);
}

/* Read one message of a record, and nothing else of it. */
static PyObject *read_line(Source *source, Context *context, int64_t number, int64_t place)
{
    Cursor cursor;
    uint64_t count;
    PyObject *in_hash = NULL, *message = NULL;
    if (!open_messages(source, context, number, &cursor, &in_hash, &count))
        goto done;
    if (place < 0 || (uint64_t)place >= count) {
        PyErr_SetString(PyExc_ValueError, "a record of the run lacks a message");
        goto done;
    }
    for (int64_t at = 0; at < place; at++)
        if (!skip_message(source, &cursor, context))
            goto done;
    message = read_own_message(source, &cursor, context, in_hash);
done:
    Py_XDECREF(in_hash);
    return message;
}

/* Compare the hash of the message that comes next: 1 the same, 0 another, -1 an error. */
static int compare_hash(Source *source, Cursor cursor, Context *context, PyObject *in_hash,
                        PyObject *hash)
{
    Shape *shape = read_shape(source, &cursor, 0, MESSAGE);
    if (!shape)
        return -1;
    PyObject *own = read_column(source, &cursor, context, shape, source->message_hash_at, in_hash);
    int same = own ? PyObject_RichCompareBool(own, hash, Py_EQ) : -1;
    Py_XDECREF(own);
    return same;
}

/* Read the message of a hash from a record; None where it has none. */
static PyObject *read_end(Source *source, Context *context, int64_t number, PyObject *hash)
{
    Cursor cursor;
    uint64_t count;
    PyObject *in_hash = NULL, *message = NULL;
    if (!open_messages(source, context, number, &cursor, &in_hash, &count))
        goto done;
    for (uint64_t at = 0; at < count; at++) {
        int same = compare_hash(source, cursor, context, in_hash, hash);
        if (same > 0)
            message = read_own_message(source, &cursor, context, in_hash);
        if (same || !skip_message(source, &cursor, context))
            goto done;
    }
    message = Py_NewRef(Py_None);
done:
    Py_XDECREF(in_hash);
    return message;
}

/* Read the newest state of an account, or None. */
static PyObject *read_newest(Source *source, Context *context, int64_t number)
{
    const uint8_t *start = item_at(source, STATE_AT, number, 8);
    const uint8_t *stop = item_at(source, STATE_AT, number + 1, 8);
    const uint8_t *row = item_at(source, ACCOUNT_ROW, number, 4);
    const uint8_t *end = item_at(source, ACCOUNT_ROW, number + 1, 4);
    if (!start || !stop || !row || !end)
        return NULL;
    int64_t first = load_i64(start), last = load_i64(stop);
    context->row = load_u32(row) < load_u32(end) ? load_u32(end) : 0;
    const uint8_t *lt = context->row ? item_at(source, LT, context->row - 1, 8) : NULL;
    if (context->row && !lt)
        return NULL;
    context->lt = lt ? load_i64(lt) : 0;
    if (first == last)
        return Py_NewRef(Py_None);
    const Py_buffer *states = &source->arrays[STATES];
    if (first < 0 || last < first || last > states->len) {
        PyErr_SetString(PyExc_ValueError, "the states of the run are damaged");
        return NULL;
    }
    const uint8_t *data = states->buf;
    Cursor cursor = {data + first, data + last};
    Shape *shape = read_shape(source, &cursor, 0, STATE);
    return shape ? (PyObject *)read_row(source, &cursor, context, shape) : NULL;
}

typedef PyObject *(*Reading)(Source *, Context *, int64_t);

static PyObject *read_all(PyObject *self, PyObject *numbers, Reading read)
{
    Py_ssize_t count = PySequence_Size(numbers);
    if (count < 0)
        return NULL;
    PyObject *found = PyList_New(count);
    Context context = {.first = 0, .last = 0};
    for (Py_ssize_t at = 0; found && at < count; at++) {
        PyObject *item = PySequence_GetItem(numbers, at);
        long long number = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        PyObject *record = PyErr_Occurred() ? NULL : read((Source *)self, &context, number);
        if (!record || PyList_SetItem(found, at, record) < 0)
            Py_CLEAR(found);
    }
    end_context(&context);
    return found;
}

static PyObject *source_records(PyObject *self, PyObject *rows)
{
    return read_all(self, rows, read_record);
}

static PyObject *source_states(PyObject *self, PyObject *numbers)
{
    return read_all(self, numbers, read_newest);
}

static PyObject *source_newest(PyObject *self, PyObject *addresses)
{
    Source *source = (Source *)self;
    Py_ssize_t count = PyList_Size(addresses);
    PyObject *found = count < 0 ? NULL : PyList_New(count);
    Context context = {.first = 0, .last = 0};
    for (Py_ssize_t at = 0; found && at < count; at++) {
        int64_t number;
        PyObject *address = PyList_GetItem(addresses, at), *state = NULL;
        if (address && find_account(source, address, &number))
            state = number < 0 ? Py_NewRef(Py_None) : read_newest(source, &context, number);
        if (!state || PyList_SetItem(found, at, state) < 0)
            Py_CLEAR(found);
    }
    end_context(&context);
    return found;
}

static PyObject *source_lines(PyObject *self, PyObject *places)
{
    Py_ssize_t count = PySequence_Size(places);
    if (count < 0)
        return NULL;
    PyObject *found = PyList_New(count);
    Context context = {.first = 0, .last = 0};
    for (Py_ssize_t at = 0; found && at < count; at++) {
        PyObject *item = PySequence_GetItem(places, at), *line = NULL;
        long long row, place;
        if (item && PyArg_ParseTuple(item, "LL", &row, &place))
            line = read_line((Source *)self, &context, row, place);
        Py_XDECREF(item);
        if (!line || PyList_SetItem(found, at, line) < 0)
            Py_CLEAR(found);
    }
    end_context(&context);
    return found;
}

static PyObject *source_ends(PyObject *self, PyObject *wanted)
{
    Py_ssize_t count = PySequence_Size(wanted);
    PyObject *found = count < 0 ? NULL : PyList_New(count);
    Context context = {.first = 0, .last = 0};
    for (Py_ssize_t at = 0; found && at < count; at++) {
        PyObject *item = PySequence_GetItem(wanted, at), *line = NULL, *hash;
        long long row;
        if (item && PyArg_ParseTuple(item, "LO", &row, &hash))
            line = read_end((Source *)self, &context, row, hash);
        Py_XDECREF(item);
        if (!line || PyList_SetItem(found, at, line) < 0)
            Py_CLEAR(found);
    }
    end_context(&context);
    return found;
}

static void source_dealloc(PyObject *self)
{
    Source *source = (Source *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int at = 0; at < source->open; at++)
        PyBuffer_Release(&source->arrays[at]);
    PyMem_Free(source->shapes);
    Py_XDECREF(source->kept);
    Py_XDECREF(source->types);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Take shapes: a list of (kind, codes, constants). */
static bool take_shapes(Source *source, PyObject *shapes)
{
    source->shape_count = PyTuple_Size(shapes);
    source->kept = Py_NewRef(shapes);
    source->shapes = PyMem_Calloc((size_t)source->shape_count + 1, sizeof(Shape));
    if (source->shape_count < 0 || !source->shapes)
        return false;
    for (Py_ssize_t at = 0; at < source->shape_count; at++) {
        Shape *shape = &source->shapes[at];
        int kind;
        Py_ssize_t size;
        if (!PyArg_ParseTuple(PyTuple_GetItem(shapes, at), "iy#O!", &kind, &shape->codes, &size,
                              &PyTuple_Type, &shape->constants))
            return false;
        if (kind < 0 || kind >= KINDS || size != PyTuple_Size(shape->constants) ||
            size > source->widths[kind]) {
            PyErr_SetString(PyExc_ValueError, "a shape of the run is damaged");
            return false;
        }
        shape->kind = (Kind)kind;
        shape->count = size;
        if ((kind == TRANSACTION && source->in_hash_at >= size) ||
            (kind == MESSAGE && source->message_hash_at >= size)) {
            PyErr_SetString(PyExc_ValueError, "a shape of the run is damaged");
            return false;
        }
    }
    return true;
}

static PyObject *source_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *arrays, *shapes, *types;
    (void)names;
    Source *source = PyObject_New(Source, type);
    if (!source)
        return NULL;
    memset((char *)source + sizeof(PyObject), 0, sizeof *source - sizeof(PyObject));
    if (!PyArg_ParseTuple(args, "O!O!O!(nnnn)(nn)n:Source", &PyTuple_Type, &arrays, &PyTuple_Type,
                          &shapes, &PyTuple_Type, &types, &source->widths[0], &source->widths[1],
                          &source->widths[2], &source->widths[3], &source->in_hash_at,
                          &source->message_hash_at, &source->records_per_block))
        goto failed;
    if (PyTuple_Size(arrays) != ARRAYS || PyTuple_Size(types) != KINDS + 1 ||
        source->records_per_block < 1) {
        PyErr_SetString(PyExc_ValueError, "Source takes all arrays of a run");
        goto failed;
    }
    source->types = Py_NewRef(types);
    for (; source->open < ARRAYS; source->open++)
        if (PyObject_GetBuffer(PyTuple_GetItem(arrays, source->open), &source->arrays[source->open],
                               PyBUF_SIMPLE) < 0)
            goto failed;
    source->rows = source->arrays[LT].len / 8;
    if (!take_shapes(source, shapes))
        goto failed;
    return (PyObject *)source;
failed:
    Py_DECREF(source);
    return NULL;
}

static PyMethodDef source_methods[] = {
    {"read_records", source_records, METH_O, "Return the records of rows, in their order."},
    {"read_lines", source_lines, METH_O, "Return messages, given the row and place of each."},
    {"read_ends", source_ends, METH_O,
     "Return messages, given the row and hash of each; None where the row has none."},
    {"read_states", source_states, METH_O, "Return the newest states of accounts by number."},
    {"read_newest", source_newest, METH_O,
     "Return the newest states of a list of accounts, each workchain and 32 bytes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot source_slots[] = {
    {Py_tp_doc, (void *)"The arrays of an open run."},
    {Py_tp_new, (void *)source_new},
    {Py_tp_dealloc, (void *)source_dealloc},
    {Py_tp_methods, source_methods},
    {0, NULL},
};

PyType_Spec source_spec = {
    .name = "lake.lookup._rows.Source",
    .basicsize = sizeof(Source),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = source_slots,
};
