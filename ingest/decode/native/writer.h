/* Writes bags of cells in the node's order, byte for byte like ingest/decode/cell/writer.py. */
#ifndef TONLAKE_WRITER_H
#define TONLAKE_WRITER_H

#include "tree.h"

/* State of writing besides the tree, reused from bag to bag. */
typedef struct {
    uint32_t *slots; /* hash -> local cell + 1, an open-addressing table */
    size_t slot_count;
    Heap locals, stack, listed, placed;
    Heap tags;       /* used by writer_open */
    Heap stamps;     /* cell -> first_stamp + local cell; smaller ones belong to earlier bags */
    uint32_t first_stamp, next_stamp;
    uint64_t seed;
} Writer;

/* Determine whether all cells hashed so far differ, as in blocks of nodes: then bags of subtrees
   are written without comparing hashes. */
Status writer_open(Writer *writer, Tree *tree);

/* Invalidate the stamps of all cells, and allocate `count` new ones; NULL if there is no memory. */
uint32_t *writer_stamps(Writer *writer, const Tree *tree, uint32_t count);

/* Append the bag of the subtree under `root` to `to`, without duplicates. */
Status write_bag(Writer *writer, const Tree *tree, uint32_t root, Heap *to);

/* Append the bag of the subtree under `root` in the order of the parsed bag, with duplicates. */
Status write_part(Writer *writer, const Tree *tree, uint32_t root, Heap *to);

/* Append the bag of one cell without references, given as d1, d2 and data. */
Status write_single(const uint8_t *cell, size_t size, Heap *to);

void writer_free(Writer *writer);

#endif
