/* Bags of ordinary cells: reading a bag, and writing the part of it that is shown raw. */
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
    Cell cells[MAX_CELLS + 1]; /* one extra: the rest of a cell becomes a new cell */
    uint16_t twins[MAX_CELLS + 1]; /* the first equal cell; computed on first use */
    bool has_twins;
    unsigned count;
    size_t bytes; /* of all cells, with their descriptors */
} Bag;

/* Read a bag with one root, its first cell. Return false for anything left to the reference
   decoder: damage, exotic cells, stored hashes, checksums, an index, more than MAX_CELLS. */
bool read_bag(Bag *bag, const uint8_t *data, size_t size);

/* Write the bag of a cell and its descendants in the node's order; return its size, or 0 if it
   needs `write_ordered`: equal or shared cells, or more than 48. */
size_t write_light(const Bag *bag, const Cell *root, uint8_t *target);

#define MAX_WRITTEN (48 * 134 + 16)

typedef struct Order Order;

/* Write any bag to a growing buffer; return its size, or 0 if memory is exhausted. The scratch
   `order` is allocated on first use; release it with `free`. */
size_t write_ordered(Bag *bag, const Cell *root, Order **order, uint8_t **target, size_t *room);

#endif
