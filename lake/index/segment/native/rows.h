/* Declarations shared by this extension: rows as Python objects, and the arrays of a segment. */
#ifndef TONLAKE_ROWS_H
#define TONLAKE_ROWS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format.h"
#include "held.h"
#include "numbers.h"

/* A row, whose columns are attributes or are read by name in brackets. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t count;
    PyObject *owner; /* owned, or NULL: keeps the values alive */
    bool owns;       /* some values are owned objects */
    Value values[];
} Row;

/* Return a new row type, given its name and a tuple of column names. */
PyObject *make_row_type(PyObject *self, PyObject *args);

/* Return a row of count columns, all None but the first ones, which the caller must fill. The row keeps
   its owner. */
Row *new_row(PyTypeObject *type, Py_ssize_t count, Py_ssize_t filled, PyObject *owner);

/* Set a column to an object; the row takes over the reference. */
void give_object(Row *row, Py_ssize_t at, PyObject *object);

/* Bytes being read; reading stops at end. */
typedef struct {
    const uint8_t *at, *end;
} Cursor;

/* A shape: which columns of a kind of row are constant, and which follow in the record. */
typedef struct {
    Kind kind;
    Py_ssize_t count;
    const char *codes;
    Value *values;         /* the constants */
    Py_ssize_t *open;      /* places of the columns that follow */
    Py_ssize_t open_count;
    Py_ssize_t opcode_at;  /* the column that is read from the body, or -1 */
} Shape;

typedef enum {
    RECORDS,
    RECORD_AT,
    HASH,
    HASH_AFTER,
    LT,
    NOW,
    MC_SEQNO,
    ROOT,
    PARENT,
    OTHER,
    ACCOUNT_ROW,
    ACCOUNT_ID,
    STATE_AT,
    STATES,
    ENDED_AT,
    ENDED,
    ARRAYS
} Array;

/* The arrays of one open segment; those of numbers are packed. */
typedef struct {
    PyObject_HEAD
    Py_buffer arrays[ARRAYS];
    Packed numbers[ARRAYS];
    int open; /* arrays that hold a buffer */
    PyObject *kept; /* the shapes passed in: owns codes and constants */
    Shape *shapes;
    Py_ssize_t shape_count;
    PyObject *hashes; /* tuple of the numbered hashes */
    PyObject *types; /* row type of each kind, of Record, Found and Member */
    Py_ssize_t widths[KINDS]; /* columns of each type */
    Py_ssize_t in_hash_at, message_hash_at, body_at;
    int64_t rows;
} Source;

/* The current row, and its account. */
typedef struct {
    int64_t row, lt, lt_before, now;
    int64_t first, last; /* rows of the account */
    int64_t far_end; /* end of the far bytes that were read last in the row */
    const uint8_t *account; /* 32 bytes; NULL: not read yet */
    int64_t workchain;
    Value in_hash; /* of the inbound message */
} Context;

/* Find the number of an account, a tuple of workchain and 32 bytes; -1: the segment has none. */
bool find_account(const Source *source, PyObject *address, int64_t *number);

/* Return the offset of an item of fixed size in an array of bytes. */
const uint8_t *item_at(Source *source, Array array, int64_t at, Py_ssize_t width);

/* Read an item of an array of numbers. */
bool number_at(Source *source, Array array, int64_t at, int64_t *value);
bool read_long_number(Cursor *cursor, uint64_t *value);

/* Read a number; most have one byte. */
static inline bool read_number(Cursor *cursor, uint64_t *value)
{
    if (cursor->at < cursor->end && *cursor->at < 0x80) {
        *value = *cursor->at++;
        return true;
    }
    return read_long_number(cursor, value);
}

Shape *read_shape(Source *source, Cursor *cursor, uint64_t bias, Kind kind);
Row *read_row(Source *source, Cursor *cursor, Context *context, const Shape *shape);

/* Whether the shape determines a column: by its value, or by its position in the body. */
static inline bool is_shaped(char code)
{
    return code == '.' || code == 'o';
}

/* Read the values of the next row, by place. */
bool find_values(Source *source, Cursor *cursor, Context *context, const Shape *shape,
                 Value *values);

/* Read one column of the next row, other than an opcode, and move the cursor past it. */
bool find_column(Source *source, Cursor *cursor, Context *context, const Shape *shape,
                 Py_ssize_t column, Value *value);
bool skip_row(Source *source, Cursor *cursor, const Shape *shape);

/* Find id and workchain of an account by its number. */
bool find_id(Source *source, int64_t number, const uint8_t **account, int64_t *workchain);

/* Move to a row: set the range of its record, and the values that arrays have of it. */
bool find_record(Source *source, Context *context, int64_t row, Cursor *cursor);
bool find_hash(Source *source, Array array, int64_t row, Value *value);

/* Find the transaction hash that a number in root or parent refers to, or None. */
bool find_linked(Source *source, int64_t number, Value *value);

/* Read a state or None; same: it is the state after the previous record. */
PyObject *read_state(Source *source, Cursor *cursor, Context *context, bool *same);
bool skip_state(Source *source, Cursor *cursor);

/* Read a complete record: its row, messages, state before, state after. */
PyObject *read_record(Source *source, Context *context, int64_t number);

/* Read the newest state of an account, or None. */
PyObject *read_newest(Source *source, Context *context, int64_t number);

/* Read a complete trace. */
PyObject *read_trace(Source *source, Context *context, int64_t number);

/* Read the messages of a record, preceded by their number. */
PyObject *read_messages(Source *source, Cursor *cursor, Context *context);

/* Read one message of a record, by place or hash, and nothing else of the record; None if it has no
   message of the hash. */
PyObject *read_one(Source *source, Context *context, int64_t number, PyObject *key);

/* Move to a message of a record, by place or hash: set its start; found: the record has it. */
bool find_message(Source *source, Context *context, int64_t number, PyObject *key, Cursor *cursor,
                  bool *found);

/* Move to the messages of a record: set their number. */
bool open_messages(Source *source, Context *context, int64_t number, Cursor *cursor,
                   uint64_t *count);

/* Return the messages that pass filters. */
PyObject *choose_messages(PyObject *self, PyObject *args);

/* Return the transactions of a trace. */
PyObject *list_members(PyObject *self, PyObject *args);

/* Return columns of messages as Arrow buffers. */
PyObject *read_columns(PyObject *self, PyObject *args);

/* Return (number, row) for each row in the postings of hashes that has another time. */
PyObject *find_others(PyObject *self, PyObject *args);

/* Return the first places of postings by the times of their rows. */
PyObject *list_nearest(PyObject *self, PyObject *args);

extern PyType_Spec source_spec;

#endif
