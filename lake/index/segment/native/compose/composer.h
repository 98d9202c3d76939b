/* A segment being composed: the data collected from its rows. */
#ifndef TONLAKE_COMPOSER_H
#define TONLAKE_COMPOSER_H

#include "encode.h"
#include "part.h"

/* The other end of a message: not an account, its destination, its source. */
enum { NO_PEER, TO_PEER, FROM_PEER };

/* One end of a message: keys of its hash, the next 8 bytes, its body, and the account at the other
   end, or its destination if it has no source; its creation; and whether this is the source's end. */
typedef struct {
    uint64_t hash, check, body, opcode, peer;
    int64_t created, created_at;
    uint32_t row, place : 29, is_source : 1, peer_kind : 2;
} End;

/* Keys of a missing opcode and a missing creation: after all others. */
#define NO_OPCODE ((uint64_t)1 << 32)
#define NO_LT INT64_MAX

/* Columns of postings being collected. */
typedef struct {
    Growing words[7];
} Columns;

enum { END_COLUMNS = 7 };

/* Append a row to columns: one word for each. */
static inline void add_row(Columns *columns, int count, const uint64_t *words)
{
    for (int at = 0; at < count; at++)
        append_word(&columns->words[at], words[at]);
}

/* Add an end of a message by a key: first by creation, then the destination's before the source's. */
static inline void add_end_row(Columns *columns, uint64_t key, const End *end)
{
    add_row(columns, END_COLUMNS,
            (uint64_t[]){key, (uint64_t)end->created, end->hash, end->check, end->is_source,
                         end->row, end->place});
}

typedef struct {
    PyObject_HEAD
    Layout layouts[KINDS];
    PyObject *names[TABLES]; /* tuples of the columns requested from each table */
    Encoder encoder;
    Growing record_at, hash, hash_after, lt, now, mc_seqno; /* of each row */
    Growing trace_id, parent_hash;                          /* zeroes: unknown */
    Growing account_id, account_row, balance, state_at, state;
    Growing failed;            /* rows of aborted transactions */
    Growing ends;              /* End */
    Growing norms, norm_rows;  /* keys of normalized hashes that differ, and their rows */
    Growing wait;              /* longest time from creation to consumption, in lt and seconds */
    Growing root, parent, other;
    Growing ended_key, ended_at, ended_data;
    bool busy, ended, broken;
} Composer;

/* Add the rows of a part, and append their records to `records`. */
void compose_part(Composer *composer, Part *part, Growing *records);

/* Find the rows of all traces and parents, and add complete traces, of TRACE_COLUMNS. */
void compose_traces(Composer *composer, const Table *traces);

/* Append the accounts that have a state, highest balance first. */
bool order_by_balance(const Composer *composer, Growing *order);

/* Append to `columns` the ends whose other end is not in the segment, by the key of a name. */
bool list_alone(const Composer *composer, const char *name, Columns *columns);

/* Append to `columns` the ends of external messages that have more than one, by opcode or body. */
bool list_again(const Composer *composer, const char *name, Columns *columns);

/* Return the columns of postings by their name, as memoryviews. */
PyObject *collect_columns(const Composer *composer, const char *name);

extern PyType_Spec composer_spec;

#endif
