/* Represents cells as flat arrays: a cell is its index, and its children come after it. */
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
    const uint8_t *data; /* data bits, with the completion tag: (d2 + 1) / 2 bytes */
    uint32_t refs[MAX_REFS];
    uint32_t digest; /* index of its lowest hash in `hashes`, and of its depth; 0: none */
    uint16_t bits;
    uint8_t d1, d2; /* d1 without the bit for stored hashes */
    uint8_t weight; /* size of the subtree, at most 255: see writer.c */
} Cell;

/* Bytes of cells that were appended to a tree. */
typedef struct Chunk Chunk;

typedef struct {
    Cell *cells;
    uint32_t count;
    uint32_t root;
    Hash *hashes; /* the first MAX_LEVEL + 1 belong to no cell */
    uint16_t *depths;
    uint32_t hash_count;
    const uint16_t *heights; /* depths of the cells of the bag, by links alone */
    Chunk *chunks;
    bool is_distinct; /* the cells of the bag all differ, as found by writer_open */
    struct {
        Heap cells, hashes, depths, heights, stored, found;
    } memory; /* of the arrays, reused from tree to tree */
} Tree;

/* Parse a bag of cells with one root and check all its cells; `data` must outlive the tree. The CRC
   is not checked: the caller knows a hash of all bytes. No hash is computed yet. */
Status tree_parse(Tree *tree, const uint8_t *data, size_t size);

/* Return the number of data bits of a cell: all, or those before the completion tag. */
unsigned measure_bits(unsigned d2, unsigned last);

/* CRC-32C, which a bag of cells stores little-endian. */
uint32_t crc32c(const uint8_t *data, size_t size);

/* Return whether a bag of cells with one root has no CRC, or the right one. */
bool boc_has_right_crc(const uint8_t *data, size_t size);

/* Take cells that were parsed or built elsewhere, the root first and each before its children, and
   check them like `tree_parse`; their data must outlive the tree. */
Status tree_take(Tree *tree, const Cell *cells, uint32_t count);

/* Compute the hashes of all cells, and compare them with those stored in the bag. */
Status tree_digest_whole(Tree *tree);

/* Compute the missing hashes of the cells under some roots; `tree_hash` and `tree_depth` may be
   called only for hashed cells. Merkle cells among them must store the hashes of their children. */
Status tree_digest(Tree *tree, const uint32_t *roots, size_t count);

/* Clear the tree; its memory is kept for the next one. */
void tree_reset(Tree *tree);
void tree_free(Tree *tree);

/* Append an ordinary cell with children in the tree; it has the first `bits` bits of `data`. */
Status tree_append(Tree *tree, const uint8_t *data, unsigned bits, const uint32_t *refs,
                   unsigned ref_count, uint32_t *to);

/* Write d1, d2 and data of an ordinary cell with its completion tag; return their length. `to`
   has the bits after two free bytes, and space for 130 bytes. */
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

/* Return the type of an exotic cell, 0 for an ordinary one. */
static inline unsigned cell_kind(const Cell *cell)
{
    return cell->d1 & EXOTIC_BIT ? cell->data[0] : 0;
}

static inline bool cell_is_merkle(const Cell *cell)
{
    unsigned kind = cell_kind(cell);
    return kind == MERKLE_PROOF || kind == MERKLE_UPDATE;
}

/* Return the index of the hash of a cell at a level (3 and above: the representation hash). */
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

/* Return the hash of a pruned branch at a level below its own, which is stored in its data. */
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
