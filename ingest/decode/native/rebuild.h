/* Rebuilds the bag of a transaction's cells from its rows: see ingest/decode/block/recipe.py. */
#ifndef TONLAKE_REBUILD_H
#define TONLAKE_REBUILD_H

#include "decoder.h"

typedef struct {
    Row_transactions row;
    Row_messages *messages; /* the in message first, if any */
    size_t count;
    Heap bytes; /* the bytes that spans of the rows refer to */
} InputRows;

/* Append the bag to `to` if the rows yield the hash in the transaction's row; otherwise NOT_MINE,
   and the reference reports the difference. */
Status rebuild_bag(const InputRows *rows, const Sha256 *sha, uint64_t seed, Heap *to);

#endif
