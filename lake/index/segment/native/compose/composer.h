/* A segment being composed: what is collected of its rows. */
#ifndef TONLAKE_COMPOSER_H
#define TONLAKE_COMPOSER_H

#include "encode.h"
#include "part.h"

/* One end of a message: keys of its hash, the 8 bytes behind, and its body; when it was made. */
typedef struct {
    uint64_t hash, check, body, opcode;
    int64_t created;
    uint32_t row, place;
} End;

/* What an opcode is where there is none, and creation: after all others. */
#define NO_OPCODE ((uint64_t)1 << 32)
#define NO_LT INT64_MAX

typedef struct {
    PyObject_HEAD
    Layout layouts[KINDS];
    PyObject *names[TABLES]; /* tuples: the columns asked of each table */
    Encoder encoder;
    Growing record_at, hash, hash_after, lt, now, mc_seqno; /* of each row */
    Growing trace_id, parent_hash;                          /* zeroes: not known */
    Growing account_id, account_row, balance, state_at, state;
    Growing failed;            /* rows of aborted transactions */
    Growing ends;              /* End */
    Growing norms, norm_rows;  /* keys of normal hashes that differ, and their rows */
    Growing root, parent, other;
    Growing ended_key, ended_at, ended_data;
    bool busy, ended, broken;
} Composer;

/* Add the rows of a part, whose records are appended to `records`. */
void compose_part(Composer *composer, Part *part, Growing *records);

/* Find the rows of all traces and parents, and add complete traces, of TRACE_COLUMNS. */
void compose_traces(Composer *composer, const Table *traces);

/* Append the accounts that have a state, the richest first. */
bool order_by_balance(const Composer *composer, Growing *order);

/* Return the columns of postings by their name, as memoryviews. */
PyObject *collect_columns(const Composer *composer, const char *name);

extern PyType_Spec composer_spec;

#endif
