/* Decodes a branch of the accounts of a whole shard state: cells by handle to rows. */
#ifndef TONLAKE_BRANCH_H
#define TONLAKE_BRANCH_H

#include "decoder.h"

/* A cell from a store: descriptors, data, and the handles of its children. */
typedef struct {
    const uint8_t *handle, *data;
    size_t size;
} PackedCell;

typedef struct {
    const PackedCell *cells; /* the root first, then its descendants */
    uint32_t count;
    unsigned width; /* bytes of a handle; handles with the size of a hash are the hashes */
    Hash key;       /* of the root's accounts: the bits before its label */
    unsigned used;
    const uint8_t *skipped; /* accounts that get no row, in order */
    size_t skipped_count;
    bool only_active;
} Branch;

/* Decode the accounts to tables of a decoder; `header` and `raw` are those of the block that the
   state follows, as far as rows need them. `*accounts` is their number. NOT_MINE: the Python
   reference decides. */
Status decode_branch(Decoder *decoder, const RawBlock *raw, const Row_blocks *header,
                     const Branch *branch, size_t *accounts);

#endif
