/* Cells as flat arrays: a cell is its index, its children stand after it. */
#ifndef TONLAKE_TREE_H
#define TONLAKE_TREE_H

#include "heap.h"
#include "sha256.h"

enum { PRUNED = 1, LIBRARY = 2, MERKLE_PROOF = 3, MERKLE_UPDATE = 4 };

#define MAX_REFS 4
#define MAX_BITS 1023
#define MAX_LEVEL 3
/* Deepest tree the node accepts (CellTraits::max_depth). */
#define MAX_DEPTH 1024
#define EXOTIC_BIT 8

typedef struct {
    const uint8_t *data; /* data bits, the completion tag included: (d2 + 1) / 2 bytes */
    uint32_t refs[MAX_REFS];
    uint32_t digest; /* place of the lowest of its hashes in `hashes`, and of its depths; 0: none */
    uint16_t bits;
    uint8_t d1, d2; /* d1 without the bit that says that hashes are stored */
    uint8_t weight; /* size of the sub-tree, cut at 255: see writer.c */
} Cell;

/* Bytes of cells that were appended to a tree. */
typedef struct Chunk Chunk;

typedef struct {
    Cell *cells;
    uint32_t count;
    uint32_t root;
    Hash *hashes; /* the first few, MAX_LEVEL + 1, are no cell's */
    uint16_t *depths;
    uint32_t hash_count;
    const uint16_t *heights; /* depths of the cells of the bag, as far as cells go */
    const uint8_t *parents;  /* how often cells of the bag refer to each of them, cut at 255 */
    Chunk *chunks;
    bool is_distinct; /* no two cells of the bag are equal, as writer_open found */
    struct {
        Heap cells, hashes, depths, heights, parents, stored, found, order;
    } memory; /* behind the arrays, kept from tree to tree */
} Tree;

/* Read a bag of cells with one root and check every cell of it; `data` must outlive the tree. A CRC
   is not looked at: the caller knows a hash of all bytes. No hash is computed yet. */
Status tree_parse(Tree *tree, const uint8_t *data, size_t size);

/* Number of data bits of a cell: all, or those before the last one, which ends data inside a byte. */
unsigned measure_bits(unsigned d2, unsigned last);

/* CRC-32C, which a bag of cells stores little-endian. */
uint32_t crc32c(const uint8_t *data, size_t size);

/* Whether a bag of cells with one root has no CRC, or the one of its bytes. */
bool boc_has_right_crc(const uint8_t *data, size_t size);

/* Take cells that were read or made elsewhere, the root first and each before its children, and check
   what `tree_parse` checks of them together; their data must outlive the tree. */
Status tree_take(Tree *tree, const Cell *cells, uint32_t count);

/* Compute the hashes of all cells, and compare them with those that the bag stores. */
Status tree_digest_whole(Tree *tree, const Sha256 *sha);

/* Compute the hashes of the cells under some roots, those that have none yet: only then `tree_hash`
   and `tree_depth` may be asked about them. Merkle cells among them must name their children. */
Status tree_digest(Tree *tree, const Sha256 *sha, const uint32_t *roots, size_t count);

/* Make the tree empty; its memory stays for the next one. */
void tree_reset(Tree *tree);
void tree_free(Tree *tree);

/* Append an ordinary cell over cells of the tree; the first `bits` bits of `data` are its own. */
Status tree_append(Tree *tree, const Sha256 *sha, const uint8_t *data, unsigned bits,
                   const uint32_t *refs, unsigned ref_count, uint32_t *to);

/* Write d1, d2 and data of an ordinary cell, and its completion tag; return their length. `to`
   holds the bits behind two free bytes and has room for 130 bytes. */
size_t pack_head(uint8_t *to, uint8_t d1, unsigned bits);

static inline unsigned cell_ref_count(const Cell *cell)
{
    return cell->d1 & 7;
}

static inline unsigned cell_bytes(const Cell *cell)
{
    return (cell->d2 + 1u) >> 1;
}

static inline unsigned cell_mask(const Cell *cell)
{
    return cell->d1 >> 5;
}

/* The kind of an exotic cell, 0 for an ordinary one. */
static inline unsigned cell_kind(const Cell *cell)
{
    return cell->d1 & EXOTIC_BIT ? cell->data[0] : 0;
}

static inline bool cell_is_merkle(const Cell *cell)
{
    unsigned kind = cell_kind(cell);
    return kind == MERKLE_PROOF || kind == MERKLE_UPDATE;
}

/* Where the hash that a cell shows at a level (3 and above: the representation hash) stands. */
static inline uint32_t cell_digest(const Cell *cell, unsigned level)
{
    unsigned below = cell_mask(cell) & ((1u << level) - 1);
    return cell->digest + (below & 1) + (below >> 1 & 1) + (below >> 2 & 1);
}

/* A cell has a hash for level 0 and one for every level of its mask. */
static inline unsigned cell_hash_count(const Cell *cell)
{
    return cell_digest(cell, MAX_LEVEL) - cell->digest + 1;
}

/* The hash that a pruned branch shows at a level below its own: it is stored in its data. */
static inline const uint8_t *pruned_hash(const Cell *cell, unsigned level)
{
    return cell->data + 2 + (cell_digest(cell, level) - cell->digest) * HASH_BYTES;
}

static inline const Hash *tree_hash(const Tree *tree, uint32_t cell, unsigned level)
{
    return &tree->hashes[cell_digest(&tree->cells[cell], level)];
}

static inline uint16_t tree_depth(const Tree *tree, uint32_t cell)
{
    return tree->depths[cell_digest(&tree->cells[cell], MAX_LEVEL)];
}

#endif
