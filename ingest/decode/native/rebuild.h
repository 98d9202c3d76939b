/* The bag of a transaction's cells, rebuilt from its rows: see ingest/decode/block/recipe.py. */
#ifndef TONLAKE_REBUILD_H
#define TONLAKE_REBUILD_H

#include "decoder.h"

typedef struct {
    Row_transactions row;
    Row_messages *messages; /* the in message first, if there is one */
    size_t count;
    Heap bytes; /* what spans of the rows point into */
} GivenRows;

/* Append the bag to `to` if the rows give the hash that the row of the transaction has; whatever
   they give instead is NOT_MINE, and for the reference to say. */
Status rebuild_bag(const GivenRows *rows, const Sha256 *sha, uint64_t seed, Heap *to);

#endif
