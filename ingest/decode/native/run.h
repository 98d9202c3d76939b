/* Sub-trees that stand in many bags of a block, such as the code of contracts, written once.

   A heavy sub-tree whose cells no cell outside refers to, but for its root, is placed in the same
   way in every bag: a search places one part of it, a visit the other (see ingest/decode/cell/order.py).
   Both are kept as bytes in which only the numbers of cells have to be set. */
#ifndef TONLAKE_RUN_H
#define TONLAKE_RUN_H

#include "order.h"

/* Most cells of a bag with runs: numbers take one byte. */
#define MAX_RUN_BAG 255

typedef struct {
    uint32_t count;             /* of cells */
    size_t size, start;         /* of bytes */
    size_t patches, patch_count;
} Part;

/* All cells below a root, in two parts; `kids` are the root's references. */
typedef struct {
    Part parts[2];
    struct {
        uint8_t part, offset;
    } kids[MAX_REFS];
    uint8_t kid_count;
    int16_t total; /* the weight that is left to the root, special cells taken off */
    bool has_special;
} Run;

/* Forget the runs of the tree before. */
Status runs_open(Writer *writer, const Tree *tree);

/* Number + 1 of the run below a cell, 0 if there is none; `*is_known` says whether that is known:
   if not, `run_make` finds it out. */
uint32_t run_find(const Writer *writer, const Tree *tree, uint32_t cell, bool *is_known);
Status run_make(Writer *writer, const Tree *tree, uint32_t cell);

static inline const Run *run_at(const Writer *writer, uint32_t run)
{
    return (const Run *)writer->runs.data + (run - 1);
}

/* Write a part of a run, or the references of its root, into a bag with this number of cells. */
uint8_t *write_part(const Writer *writer, const Local *local, unsigned part, uint32_t count,
                    uint8_t *to);
uint8_t *write_kids(const Writer *writer, const Local *local, uint32_t count, uint8_t *to);

#endif
