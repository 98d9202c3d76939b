/* A branch of the accounts of a whole shard state: cells by handle in, rows out. */
#ifndef TONLAKE_BRANCH_H
#define TONLAKE_BRANCH_H

#include "decoder.h"

/* A cell as a store gave it: descriptors, data, and the handles of its children. */
typedef struct {
    const uint8_t *handle, *data;
    size_t size;
} PackedCell;

typedef struct {
    const PackedCell *cells; /* the root first, all of them below it */
    uint32_t count;
    unsigned width; /* bytes of a handle; handles as long as hashes are the hashes */
    Hash key;       /* of the root's accounts: the bits before its label */
    unsigned used;
    const uint8_t *skipped; /* accounts that get no row, in order */
    size_t skipped_count;
    bool only_active;
} Branch;

/* Decode the accounts into tables of a decoder; `header` and `raw` are those of the block after
   which the state stood, as far as rows name it. `*accounts` is their number. NOT_MINE: the
   Python reference decides. */
Status decode_branch(Decoder *decoder, const RawBlock *raw, const Row_blocks *header,
                     const Branch *branch, size_t *accounts);

#endif
