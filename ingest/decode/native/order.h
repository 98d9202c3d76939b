/* Orders the cells of a bag in general, for trees of any size and shape. */
#ifndef TONLAKE_ORDER_H
#define TONLAKE_ORDER_H

#include "writer.h"

/* A distinct cell under a root, numbered in the order of visits. */
typedef struct {
    uint32_t cell;
    uint32_t refs[MAX_REFS]; /* numbers of locals */
    uint32_t place;          /* counted from the end of the bag */
    uint32_t run;            /* number of the run below it + 1; its cells are not locals then */
    uint32_t parts[2];       /* places where the parts of the run begin */
    uint16_t parents;        /* among the locals */
    int16_t cut;             /* weight left to it, -1 as long as it was not cut */
    uint8_t ref_count, weight;
    uint8_t marks;
} Local;

/* A placed item: a local, or part 1 or 2 of the run below it. */
#define PART_SHIFT 30

static inline uint32_t item_local(uint32_t item)
{
    return item & ((1u << PART_SHIFT) - 1);
}

static inline unsigned item_part(uint32_t item)
{
    return item >> PART_SHIFT;
}

typedef struct {
    Local *locals;
    uint32_t *placed; /* items, last of the bag first */
    uint32_t item_count;
    uint32_t count;  /* of cells */
    uint32_t searched; /* cells that were placed before the root was visited */
    bool has_special, has_runs;
} Order;

/* Number the distinct cells under `root`; a cell's references become numbers. Unless `unknown` is
   NULL, descendants of cells with a run are skipped; it becomes a cell that may have one. */
Status find_locals(Writer *writer, const Tree *tree, uint32_t root, uint32_t *unknown,
                   uint32_t *count);

/* Order the cells under `root`; the arrays belong to the writer. */
Status order_tree(Writer *writer, const Tree *tree, uint32_t root, Order *order);

/* The same without runs; runs are built this way. */
Status order_plainly(Writer *writer, const Tree *tree, uint32_t root, Order *order);

#endif
