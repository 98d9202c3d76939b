/* Orders the cells of a bag in general, for trees of any size and shape. */
#ifndef TONLAKE_ORDER_H
#define TONLAKE_ORDER_H

#include "writer.h"

/* A distinct cell under a root, numbered in the order of visits. */
typedef struct {
    uint32_t cell;
    uint32_t refs[MAX_REFS]; /* numbers of locals */
    uint32_t place;          /* counted from the end of the bag */
    int16_t cut;             /* weight left to it, -1 as long as it was not cut */
    uint8_t ref_count, weight;
    uint8_t marks;
} Local;

typedef struct {
    Local *locals;
    uint32_t *placed; /* numbers of locals, last of the bag first */
    uint32_t count;
} Order;

/* Number the distinct cells under `root`; a cell's references become numbers. */
Status find_locals(Writer *writer, const Tree *tree, uint32_t root, uint32_t *count);

/* Order the cells under `root`; the arrays belong to the writer. */
Status order_tree(Writer *writer, const Tree *tree, uint32_t root, Order *order);

#endif
