/* Records of transactions: a row, its messages, and the states before and after. */
#ifndef TONLAKE_API_RECORD_H
#define TONLAKE_API_RECORD_H

#include "layout.h"

typedef struct {
    Column parts[4];           /* of a record: row, messages, before, after */
    Column hash;               /* of the row */
    Column message_hash, direction; /* of a message */
    PyObject *incoming;        /* value of `direction` for the incoming message */
    Column hash_before, hash_after; /* of the transaction's row: hashes of the states */
    PyObject *nonexist_hash;   /* hash of a state that does not exist */
    PyObject *nonexist, *unknown; /* rows written for states that do not exist or are unknown */
} RecordParts;

/* Return a capsule with the attribute names of the parts, the names of the columns above, and the
 * remaining objects. */
PyObject *compile_record(PyObject *self, PyObject *args);

/* Return the parts in a capsule; NULL with an exception if there are none. */
RecordParts *open_record(PyObject *capsule);

enum { RECORD_SOURCES = 5 };

/* Read the sources of a record's transaction as new references: row, incoming message or None, list of
 * outgoing messages, state before, state after. Return -1 on error. */
int take_record(RecordParts *parts, PyObject *record, PyObject *sources[RECORD_SOURCES]);

/* Release the sources. */
void drop_record(PyObject *sources[RECORD_SOURCES]);

#endif
