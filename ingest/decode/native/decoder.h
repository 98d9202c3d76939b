/* The stages of decoding a block, and what they share. */
#ifndef TONLAKE_DECODER_H
#define TONLAKE_DECODER_H

#include "hashmap.h"
#include "table.h"
#include "writer.h"

/* A block's id, the masterchain block that commits it, and its bytes, none of it checked. */
typedef struct {
    const uint8_t *data;
    size_t size;
    int64_t workchain, shard, seqno, mc_seqno;
    Hash root_hash, file_hash;
    Hash found_hash; /* SHA-256 of the bytes */
} RawBlock;

/* The global version of the configuration that a key block brought. */
typedef struct {
    int64_t key_seqno, version;
} KeyVersion;

/* An account with its last transaction in a block, and the hash of its state after that. */
typedef struct {
    Hash account, last_trans_hash, new_hash;
    int64_t last_trans_lt;
} Touched;

/* A set of hashes that stand elsewhere: a table of open addresses holds their numbers + 1. */
typedef struct {
    uint32_t *slots;
    size_t size, count;
} HashSet;

/* Everything that one call keeps. The memory goes from call to call: getting fresh pages from the
   system would cost as much as a quarter of the decoding. */
typedef struct {
    Sha256 sha;
    uint64_t seed; /* random, so that no block can choose hashes that meet in one slot */
    Table tables[TABLE_COUNT];
    HashSet state_cells; /* rows of state_cells, by hash */
    size_t tops;         /* the newest masterchain block's first row of shard_blocks */
    bool all_named;      /* the caller knows that masterchain blocks name all shard blocks */
    const KeyVersion *versions; /* the caller's, for one call */
    size_t version_count;
    Writer writer;
    Tree tree; /* memory that goes from block to block */
    Heap known, marks, touched, found, cells;
    Heap layouts; /* a MessageLayout per row of messages */
    Heap tail;
} Decoder;

/* Empty everything for another call, and return how much memory is kept. */
size_t decoder_reset(Decoder *decoder);
void decoder_free(Decoder *decoder);

/* What the stages know of the block at hand. */
typedef struct {
    Decoder *decoder;
    const RawBlock *raw;
    Tree tree; /* belongs to the decoder between blocks */
    Row_blocks header;
    uint32_t account_blocks, state_update, extra;
    bool has_custom, has_extra_flags;
    uint32_t custom;     /* McBlockExtra */
    Heap touched;        /* Touched, by account */
    uint32_t *known;     /* message cell -> its first row + 1 */
    uint32_t known_count;
    size_t budget;       /* bytes that its rows may still take */
    uint8_t *marks;      /* what a walk has met: bit d of a cell, at Merkle depth d */
} Block;

/* A block's rows may take 16 times its size and this much: cells that crafted blocks share a
   million times are left to the reference. */
#define BUDGET_FACTOR 16
#define BUDGET_BYTES (16u << 20)

/* Compute `found_hash` of at most MAX_HASHED blocks. */
#define MAX_HASHED 16
void hash_files(const Sha256 *sha, RawBlock *blocks, size_t count);

/* Decode one block, whose bytes are hashed, behind the others; on any other status than DONE its rows are half made. */
Status decode_block(Decoder *decoder, const RawBlock *raw);

/* TL-B block, block_info, block_extra: fills `header` and the cells of the block's parts. */
Status read_header(Block *block);
bool read_shard_ident(Slice *slice, int64_t *workchain, uint64_t *shard);

/* ShardHashes, and the configuration in key blocks: shard_blocks, config_params. */
Status decode_shards(Block *block);

/* ShardAccountBlocks: transactions, messages, and the accounts that were touched. */
Status decode_transactions(Block *block);
Status read_description(Block *block, Row_transactions *row, uint32_t cell);

/* What the row of a message leaves open: see ingest/decode/block/recipe.py. */
enum { INIT_IN_REF = 1, BODY_IN_REF = 2, EXTERNAL_ADDRESS = 4 };

typedef struct {
    Slice address; /* the external address, where `flags` has EXTERNAL_ADDRESS; else empty */
    uint8_t flags;
    bool is_usual; /* the cell follows from the row and this */
} MessageLayout;

Status decode_message(Block *block, Row_messages *row, uint32_t cell, MessageLayout *layout);

/* Whether a message cell begins with the CommonMsgInfo of the row, up to the bit `end`. */
bool is_usual_info(const Row_messages *row, const Slice *address, unsigned end, const Cell *cell);

/* Cells of a transaction. */
typedef struct {
    uint32_t messages, description;
} Cells;

/* Keep the recipe of a transaction whose cells follow from its rows, and of others the bag. */
Status keep_recipe(Block *block, Row_transactions *row, uint32_t cell, const Cells *cells,
                   const MessageLayout *layouts, size_t count);

/* The Merkle update: account_states, state_cells. */
Status decode_update(Block *block);
Status read_account(Block *block, Row_account_states *row, uint32_t cell);

/* One entry of ShardAccounts: its Account cell. `value` moves on to last_trans_hash and
   last_trans_lt, which are there. */
bool read_entry(Slice *value, uint32_t *cell);

/* The place of an account that the new side of an update does not show. */
#define NO_ENTRY UINT32_MAX

/* The row of an account; `entry` is its Account cell, if it is there. */
Status append_state(Block *block, const Touched *touched, uint32_t entry);

/* A walk over all cells under some roots, each once for every Merkle depth it stands at; depths
   above 3 show the same hashes as 3 does. */
typedef struct {
    Block *block;
    Heap todo;
} Walk;

void walk_open(Walk *walk, Block *block);
bool walk_push(Walk *walk, uint32_t cell, unsigned depth);

/* Step to the next cell and push its children; NO_MEMORY, or DONE with `*cell` set, or NOT_MINE
   at the end. */
Status walk_next(Walk *walk, uint32_t *cell, unsigned *depth);

/* Keep all cells under `roots`, which stand at Merkle depth `depth`; add the digests of those that
   are pruned to `pruned`. */
Status keep_cells(Block *block, const Heap *roots, unsigned depth, HashSet *pruned);

/* Take a pruned hash off the set; true if it was there. */
bool drop_pruned(const Block *block, HashSet *pruned, const Hash *hash);
bool has_pruned(const Block *block, const HashSet *pruned, const Hash *hash);

/* ExtraCurrencyCollection as JSON text, into the heap of a table. */
Status write_currencies(Block *block, TableName table, uint32_t root, Span *to);

/* Take bytes off the budget of the block; false when it is used up. */
bool spend(Block *block, size_t bytes);

/* The bag of a cell into the heap of a table. */
Status keep_bag(Block *block, TableName table, uint32_t root, Span *to);

#endif
