/* Writing bags of cells in the node's order, byte for byte as ingest/cell/writer.py does. */
#ifndef TONLAKE_WRITER_H
#define TONLAKE_WRITER_H

#include "tree.h"

/* What writing needs beside the tree, kept from bag to bag. */
typedef struct {
    uint32_t *slots; /* hash -> local cell + 1, a table of open addresses */
    size_t slot_count;
    Heap locals, stack, listed, placed;
    uint64_t seed;
} Writer;

/* Append the bag of the sub-tree under `root` to `to`, equal cells once. */
Status write_bag(Writer *writer, const Tree *tree, uint32_t root, Heap *to);

/* Append the bag of one cell without references, given as d1, d2 and data. */
Status write_single(const uint8_t *cell, size_t size, Heap *to);

void writer_free(Writer *writer);

#endif
