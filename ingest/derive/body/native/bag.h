/* Bags of ordinary cells: reading one, and writing the part of it that is shown raw. */
#ifndef TONLAKE_BODY_BAG_H
#define TONLAKE_BODY_BAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_REFS 4
#define MAX_CELLS 4096
#define MAX_DEPTH 512

typedef struct {
    const uint8_t *data;
    uint16_t bits;
    uint16_t depth;
    uint8_t ref_count, byte_count;
    uint16_t refs[MAX_REFS];
} Cell;

typedef struct {
    Cell cells[MAX_CELLS + 1]; /* one more: the rest of a cell becomes a cell of its own */
    unsigned count;
    size_t bytes; /* of all cells, with their descriptors */
} Bag;

/* Read a bag of one root, its first cell. False: anything that the reference decoder should look
   at: damage, exotic cells, stored hashes, checksums, an index, more than MAX_CELLS. */
bool read_bag(Bag *bag, const uint8_t *data, size_t size);

/* Write the bag of a cell and all below it in the node's order; return its size, or 0 for one
   that the reference writer should order: equal or shared cells, or more than 48. */
size_t write_bag(const Bag *bag, const Cell *root, uint8_t *target);

#define MAX_WRITTEN (48 * 134 + 16)

#endif
