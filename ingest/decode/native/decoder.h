/* The stages of decoding a block, and their shared state. */
#ifndef TONLAKE_DECODER_H
#define TONLAKE_DECODER_H

#include "hashmap.h"
#include "table.h"
#include "writer.h"

#define MAX_ANYCAST_DEPTH 30

/* A block's id, the masterchain block that commits it, and its bytes, all of it unverified. */
typedef struct {
    const uint8_t *data;
    size_t size;
    int64_t workchain, shard, seqno, mc_seqno;
    Hash root_hash, file_hash;
} RawBlock;

/* The global version of the configuration of a key block. */
typedef struct {
    int64_t key_seqno, version;
} KeyVersion;

/* An account with its last transaction in a block, and the hash of its state after it. */
typedef struct {
    Hash account, last_trans_hash, new_hash;
    int64_t last_trans_lt;
} Touched;

/* A set of hashes stored elsewhere: an open-addressing table of their numbers + 1. */
typedef struct {
    uint32_t *slots;
    size_t size, count;
} HashSet;

/* The state of a call. Its memory is reused by the next call: getting new pages from the system
   would cost up to a quarter of the decoding time. */
typedef struct {
    uint64_t seed; /* random, so that crafted hashes cannot collide */
    Table tables[TABLE_COUNT];
    HashSet state_cells; /* rows of state_cells, by hash */
    size_t tops;         /* the newest masterchain block's first row of shard_blocks */
    bool all_named;      /* the caller vouches that masterchain blocks name all shard blocks */
    const KeyVersion *versions; /* the caller's, for one call */
    size_t version_count;
    Writer writer;
    Tree tree; /* memory reused from block to block */
    Heap known, marks, touched, found, cells;
} Decoder;

/* Reset the decoder for another call; return how much memory it keeps. */
size_t decoder_reset(Decoder *decoder);
void decoder_free(Decoder *decoder);

/* What the stages know about the current block. */
typedef struct {
    Decoder *decoder;
    const RawBlock *raw;
    Tree tree; /* owned by the decoder between blocks */
    Row_blocks header;
    uint32_t account_blocks, state_update, extra;
    bool has_custom, has_extra_flags;
    uint32_t custom;     /* McBlockExtra */
    Heap touched;        /* Touched, by account */
    uint32_t *known;     /* message cell -> its first row + 1 */
    uint32_t known_count;
    size_t budget;       /* bytes left for its rows */
    Heap *commits;       /* int64_t: which masterchain block commits each shard top; or NULL */
    uint8_t *marks;      /* visited cells of a walk: bit d of a cell, at Merkle depth d */
} Block;

/* A block's rows may take 16 times its size plus this: crafted blocks that share cells a million
   times are left to the reference. */
#define BUDGET_FACTOR 16
#define BUDGET_BYTES (16u << 20)

/* Decode a block, appending its rows; on any status but DONE its rows are incomplete. */
Status decode_block(Decoder *decoder, const RawBlock *raw);

/* TL-B block, block_info, block_extra: fill `header` and the cells of the block's parts. */
Status read_header(Block *block);
bool read_shard_ident(Slice *slice, int64_t *workchain, uint64_t *shard);

/* ShardHashes, and the configuration of key blocks: shard_blocks, config_params. With `commits` a
   key block is declined. */
Status decode_shards(Block *block);

/* Parse a masterchain block, whose hash was verified, for its header and shard_blocks alone; if
   `extra` is not NULL, write its McBlockExtra there. */
Status decode_tops(Decoder *decoder, const RawBlock *raw, Row_blocks *header, Heap *commits,
                   Heap *extra);

/* ShardAccountBlocks: transactions, messages, and the touched accounts. */
Status decode_transactions(Block *block);
Status read_description(Block *block, Row_transactions *row, uint32_t cell);

Status decode_message(Block *block, Row_messages *row, uint32_t cell);

/* The Merkle update: account_states, state_cells, queue_sizes. */
Status decode_update(Block *block);
Status read_account(Block *block, Row_account_states *row, uint32_t cell);

/* Read an entry of ShardAccounts: its Account cell. `value` advances to last_trans_hash and
   last_trans_lt, which are present. */
bool read_entry(Slice *value, uint32_t *cell);

/* The entry of an account that is not on the new side of an update. */
#define NO_ENTRY UINT32_MAX

/* Append the row of an account; `entry` is its Account cell, if present. */
Status append_state(Block *block, const Touched *touched, uint32_t entry);

/* A walk over all cells under some roots, once for each of their Merkle depths; depths above 3
   have the same hashes as 3. */
typedef struct {
    Block *block;
    Heap todo;
} Walk;

void walk_open(Walk *walk, Block *block);
bool walk_push(Walk *walk, uint32_t cell, unsigned depth);

/* Step to the next cell and push its children; DONE with `*cell` set, NOT_MINE at the end, or
   NO_MEMORY. */
Status walk_next(Walk *walk, uint32_t *cell, unsigned *depth);

/* Store all cells under `roots`, which are at Merkle depth `depth`; add the digests of pruned ones
   to `pruned`. */
Status keep_cells(Block *block, const Heap *roots, unsigned depth, HashSet *pruned);

/* Remove a pruned hash from the set; true if it was in it. */
bool drop_pruned(const Block *block, HashSet *pruned, const Hash *hash);
bool has_pruned(const Block *block, const HashSet *pruned, const Hash *hash);

/* Write ExtraCurrencyCollection as JSON to the heap of a table. */
Status write_currencies(Block *block, TableName table, uint32_t root, Span *to);

/* Subtract bytes from the budget of the block; false if it is exhausted. */
bool spend(Block *block, size_t bytes);

/* Write the bag of a cell to the heap of a table. */
Status keep_bag(Block *block, TableName table, uint32_t root, Span *to);

#endif
