/* Records of transactions: a row, its messages, and the states around it. */
#ifndef TONLAKE_API_RECORD_H
#define TONLAKE_API_RECORD_H

#include "layout.h"

typedef struct {
    PyObject *parts[4];        /* names: row, messages, before, after */
    Column hash;               /* of the row */
    Column message_hash, direction; /* of a message */
    PyObject *incoming;        /* the direction of the in message */
    Column hash_before, hash_after; /* of the row: hashes of the states */
    PyObject *nonexist_hash;   /* the hash of a state that is none */
    PyObject *nonexist, *unknown; /* what stands for it, and for states that are not known */
} RecordParts;

/* Return a capsule with the names of the parts, those of the columns above, and the three objects.
 */
PyObject *compile_record(PyObject *self, PyObject *args);

/* Return the parts in a capsule; NULL with an error where it holds none. */
RecordParts *open_record(PyObject *capsule);

/* Return a tuple of what a record's transaction is written from: its row, the in message or None,
 * a list of the out messages, the state before, the state after. */
PyObject *take_record(RecordParts *parts, PyObject *record);

#endif
