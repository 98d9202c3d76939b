/* Encodes a row: the number of its shape, and the values that the shape leaves open. */
#include "encode.h"

/* Bytes up to this length are part of the shape: recipes of transactions with few messages. */
enum { SHAPED_BYTES = 3, OPCODE_BYTES = 4, LAST_PLACE = 64, AMOUNT_BYTES = 16, MAX_DIGITS = 40 };

/* Marks of columns in a shape's key. */
typedef enum { ABSENT, OPEN, FALSE_BIT, TRUE_BIT, ZERO, IN_BODY, SHORT_BYTES, SHORT_TEXT } Mark;

/* A value that the shape leaves open: an encoded number, or bytes. */
typedef struct {
    char code;
    uint64_t number;
    Bytes bytes;
} Left;

/* A row while its shape is determined; the key has room for all marks of a row. */
typedef struct {
    const Layout *layout;
    const Table *table;
    const Around *around;
    Place place;
    const Cells *cells; /* of its batch */
    Growing *key;
    int64_t before; /* the number in the previous column; 0: none */
    int count;
    Left left[MAX_COLUMNS];
} Opened;

enum { MARK_BYTES = 2, ROOM = (MAX_COLUMNS + 1) * MARK_BYTES };

static inline void mark(Opened *opened, Mark what)
{
    opened->key->data[opened->key->size++] = (uint8_t)what;
}

static void mark_constant(Opened *opened, Mark what, Bytes value)
{
    mark(opened, what);
    append_number(opened->key, value.size);
    append(opened->key, value.data, value.size);
    grow(opened->key, ROOM);
}

static inline void leave(Opened *opened, char code, uint64_t number, Bytes bytes)
{
    mark(opened, OPEN);
    Left *left = &opened->left[opened->count++];
    left->code = code;
    left->number = number;
    left->bytes = bytes;
}

static bool is_zero(Bytes value)
{
    for (size_t at = 0; at < value.size; at++)
        if (value.data[at])
            return false;
    return true;
}

/* Fold a signed number to an unsigned one that is small if it was close to 0. */
static uint64_t fold(uint64_t value)
{
    return value >> 63 ? ~value << 1 | 1 : value << 1;
}

/* Return the base that a number is close to, by its code. */
static uint64_t base_of(const Around *around, char code, int64_t before)
{
    switch (code) {
    case 'l':
        return (uint64_t)around->lt;
    case 'p':
        return (uint64_t)around->lt_before;
    case 't':
        return (uint64_t)around->now;
    case 'g':
        return before > 0 ? (uint64_t)before / GAS_PRICE : 0;
    default:
        return 0;
    }
}

/* Find the position of an opcode near the beginning of its message's body; -1: not found. */
static int find_opcode(const Opened *opened, int64_t value)
{
    const Layout *layout = opened->layout;
    if (layout->body < 0)
        return -1;
    const Cells *cells = &opened->cells[layout->places[layout->body]];
    if (is_null(cells, opened->place.row))
        return -1;
    Form form = opened->table->columns[layout->places[layout->body]].form;
    Bytes body = bytes_of(cells, form, opened->place.row);
    uint32_t opcode = (uint32_t)value;
    const uint8_t four[OPCODE_BYTES] = {(uint8_t)(opcode >> 24), (uint8_t)(opcode >> 16),
                                        (uint8_t)(opcode >> 8), (uint8_t)opcode};
    size_t end = body.size < LAST_PLACE ? body.size : LAST_PLACE;
    for (size_t at = 0; at + OPCODE_BYTES <= end; at++)
        if (memcmp(body.data + at, four, OPCODE_BYTES) == 0)
            return (int)at;
    return -1;
}

static void open_number(Opened *opened, char code, int64_t value)
{
    int in_body = code == 'o' && value ? find_opcode(opened, value) : -1;
    if (!value) {
        mark(opened, ZERO);
    } else if (in_body >= 0) {
        mark(opened, IN_BODY);
        mark(opened, (Mark)in_body);
    } else {
        uint64_t number =
            code == 'r' ? reverse_bits((uint64_t)value)
                        : fold((uint64_t)value - base_of(opened->around, code, opened->before));
        leave(opened, 'i', number, (Bytes){NULL, 0});
    }
    opened->before = value;
}

static void open_bytes(Opened *opened, char code, Bytes value)
{
    bool is_constant = code == '.' || !value.size;
    if (code != 's')
        is_constant = is_constant || value.size <= SHAPED_BYTES ||
                      (value.size == HASH_BYTES && is_zero(value));
    if (is_constant)
        mark_constant(opened, code == '.' || code == 's' ? SHORT_TEXT : SHORT_BYTES, value);
    else
        leave(opened, code, 0, value);
}

static void open_amount(Opened *opened, char code, const Cells *cells)
{
    int64_t at = cells->offset + opened->place.row;
    Bytes value = {cells->data + at * AMOUNT_BYTES, AMOUNT_BYTES};
    if (is_zero(value))
        mark(opened, ZERO);
    else
        leave(opened, code, 0, value);
}

/* Mark a column in the shape, and queue its value if the shape leaves it open. */
static inline void open_column(Opened *opened, int at)
{
    int place = opened->layout->places[at];
    const Column *column = &opened->table->columns[place];
    const Cells *cells = &opened->cells[place];
    uint32_t row = opened->place.row;
    char code = opened->layout->codes[at];
    if (is_null(cells, row)) {
        mark(opened, ABSENT);
    } else if (column->form == INTEGER) {
        open_number(opened, code, integer_of(cells, column->width, row));
        return;
    } else if (column->form == BITS) {
        mark(opened, bit_of(cells, row) ? TRUE_BIT : FALSE_BIT);
    } else if (column->form == AMOUNT) {
        open_amount(opened, code, cells);
    } else {
        open_bytes(opened, code, bytes_of(cells, column->form, row));
    }
    opened->before = 0;
}

/* Return the number of the shape whose key was collected. */
static uint64_t number_shape(Encoder *encoder)
{
    Bytes key = {encoder->key.data, encoder->key.size};
    uint64_t hash = map_hash(&encoder->shapes, key);
    Entry *entry = map_find(&encoder->shapes, key, hash);
    if (entry)
        return entry->value;
    uint64_t number = encoder->shapes.count;
    if (!map_add(&encoder->shapes, key, hash, number, true)) {
        encoder->failed = true;
        return 0;
    }
    key.data = map_find(&encoder->shapes, key, hash)->key;
    append(&encoder->shape_list, &key, sizeof key);
    return number;
}

/* Write the decimal digits of a little-endian 128-bit integer; return their number. */
static size_t write_digits(const uint8_t *amount, char digits[MAX_DIGITS])
{
    unsigned __int128 value;
    memcpy(&value, amount, sizeof value);
    bool negative = value >> 127;
    char reversed[MAX_DIGITS];
    size_t count = 0, size = 0;
    for (value = negative ? -value : value; value; value /= 10)
        reversed[count++] = (char)('0' + value % 10);
    if (negative)
        digits[size++] = '-';
    while (count)
        digits[size++] = reversed[--count];
    return size;
}

static void append_left(Encoder *encoder, Growing *out, const Left *left, const Around *around)
{
    char digits[MAX_DIGITS];
    switch (left->code) {
    case 'i':
        append_number(out, left->number);
        break;
    case 'b':
        append_bytes(encoder, out, left->bytes, around);
        break;
    case 'n':
        append_next(encoder, out, left->bytes);
        break;
    case 'h':
        append_numbered(encoder, out, left->bytes);
        break;
    case 'a':
        append_far(encoder, out,
                   (Bytes){(uint8_t *)digits, write_digits(left->bytes.data, digits)});
        break;
    default:
        append_far(encoder, out, left->bytes);
    }
}

void encode_row(Encoder *encoder, Growing *out, const Layout *layout, const Table *table,
                Place place, const Around *around, uint64_t bias)
{
    Opened opened;
    opened.layout = layout;
    opened.table = table;
    opened.around = around;
    opened.place = place;
    opened.cells = table->batches[place.batch].cells;
    opened.key = &encoder->key;
    opened.before = opened.count = 0;
    encoder->key.size = 0;
    if (!grow(&encoder->key, ROOM)) {
        encoder->failed = true;
        return;
    }
    mark(&opened, (Mark)layout->kind);
    for (int at = 0; at < layout->count && !encoder->key.failed; at++)
        open_column(&opened, at);
    encoder->far_end = -1;
    append_number(out, number_shape(encoder) + bias);
    for (int at = 0; at < opened.count; at++)
        append_left(encoder, out, &opened.left[at], around);
    encoder->failed = encoder->failed || encoder->key.failed || out->failed;
}

static uint64_t read_size(const uint8_t **at)
{
    uint64_t size = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        size |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return size;
    }
}

/* Return the constant of a column from its shape's key; `code` becomes that of the shape. */
static PyObject *read_mark(const uint8_t **at, char *code)
{
    char open = *code == 'o' ? 'i' : *code;
    Mark what = *(*at)++;
    *code = what == OPEN ? open : what == IN_BODY ? 'o' : '.';
    switch (what) {
    case FALSE_BIT:
    case TRUE_BIT:
        return PyBool_FromLong(what == TRUE_BIT);
    case ZERO:
        return PyLong_FromLong(0);
    case IN_BODY:
        return PyLong_FromLong(*(*at)++);
    case SHORT_BYTES:
    case SHORT_TEXT: {
        uint64_t size = read_size(at);
        const char *data = (const char *)*at;
        *at += size;
        return what == SHORT_TEXT ? PyUnicode_DecodeUTF8(data, (Py_ssize_t)size, NULL)
                                  : PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    }
    default:
        return Py_NewRef(Py_None);
    }
}

static PyObject *read_shape_key(const uint8_t *at, const Layout layouts[KINDS])
{
    const Layout *layout = &layouts[*at++];
    char codes[MAX_COLUMNS];
    memcpy(codes, layout->codes, sizeof codes);
    PyObject *constants = PyTuple_New(layout->count);
    for (int column = 0; constants && column < layout->count; column++) {
        PyObject *constant = read_mark(&at, &codes[column]);
        if (!constant || PyTuple_SetItem(constants, column, constant) < 0)
            Py_CLEAR(constants);
    }
    return constants ? Py_BuildValue("iy#N", (int)layout->kind, codes, (Py_ssize_t)layout->count,
                                     constants)
                     : NULL;
}

PyObject *list_shapes(const Encoder *encoder, const Layout layouts[KINDS])
{
    const Bytes *keys = (const Bytes *)(const void *)encoder->shape_list.data;
    Py_ssize_t count = (Py_ssize_t)(encoder->shape_list.size / sizeof *keys);
    Py_ssize_t hashes = (Py_ssize_t)(encoder->number_list.size / HASH_BYTES);
    PyObject *shapes = PyList_New(count), *numbered = PyList_New(hashes);
    for (Py_ssize_t at = 0; shapes && at < count; at++) {
        PyObject *shape = read_shape_key(keys[at].data, layouts);
        if (!shape || PyList_SetItem(shapes, at, shape) < 0)
            Py_CLEAR(shapes);
    }
    for (Py_ssize_t at = 0; numbered && at < hashes; at++) {
        const uint8_t *hash = encoder->number_list.data + at * HASH_BYTES;
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)hash, HASH_BYTES);
        if (!bytes || PyList_SetItem(numbered, at, bytes) < 0)
            Py_CLEAR(numbered);
    }
    PyObject *found = shapes && numbered ? PyTuple_Pack(2, shapes, numbered) : NULL;
    Py_XDECREF(shapes);
    Py_XDECREF(numbered);
    return found;
}
