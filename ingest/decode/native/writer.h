/* Writing bags of cells in the node's order, byte for byte as ingest/decode/cell/writer.py does. */
#ifndef TONLAKE_WRITER_H
#define TONLAKE_WRITER_H

#include "tree.h"

/* What writing needs beside the tree, kept from bag to bag. */
typedef struct {
    uint32_t *slots; /* hash -> local cell + 1, a table of open addresses */
    size_t slot_count;
    Heap locals, stack, listed, placed;
    Heap tags;       /* what writer_open needs */
    Heap stamps;     /* cell -> first_stamp + local cell; smaller ones are of earlier bags */
    uint32_t first_stamp, next_stamp;
    uint64_t seed;
    Heap runs, run_of, run_bytes, patches; /* see run.h */
} Writer;

/* Find out whether all cells differ that have hashes so far, as a node writes them: then bags of
   sub-trees are written without looking at hashes. */
Status writer_open(Writer *writer, Tree *tree);

/* Make the stamps of all cells old, and room for `count` new ones; NULL without memory. */
uint32_t *writer_stamps(Writer *writer, const Tree *tree, uint32_t count);

/* Append the bag of the sub-tree under `root` to `to`, equal cells once. */
Status write_bag(Writer *writer, const Tree *tree, uint32_t root, Heap *to);

/* Append the bag of one cell without references, given as d1, d2 and data. */
Status write_single(const uint8_t *cell, size_t size, Heap *to);

void writer_free(Writer *writer);

#endif
