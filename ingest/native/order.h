/* The general way of ordering the cells of a bag, for trees of any size and shape. */
#ifndef TONLAKE_ORDER_H
#define TONLAKE_ORDER_H

#include "writer.h"

/* One of the different cells under a root, numbered in the order in which they were met. */
typedef struct {
    uint32_t cell;
    uint32_t refs[MAX_REFS]; /* numbers of locals */
    uint32_t place;          /* counted from the end of the bag */
    int16_t cut;             /* weight that is left to it, -1 as long as none was cut */
    uint8_t ref_count, weight;
    uint8_t marks;
} Local;

typedef struct {
    Local *locals;
    uint32_t *placed; /* numbers of locals, last of the bag first */
    uint32_t count;
} Order;

/* Order the cells under `root`; the arrays belong to the writer. */
Status order_tree(Writer *writer, const Tree *tree, uint32_t root, Order *order);

#endif
