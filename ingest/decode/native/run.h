/* Writes subtrees that occur in many bags of a block, such as the code of contracts, only once.

   A heavy subtree is placed in the same way in every bag, if only its root has references from
   outside: a search places one part of it, a visit the other (ingest/decode/cell/order.py). Both
   are stored as bytes in which only the numbers of cells have to be filled in. */
#ifndef TONLAKE_RUN_H
#define TONLAKE_RUN_H

#include "order.h"

/* Most cells of a bag with runs: numbers are single bytes. */
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
    int16_t total; /* the weight left to the root, minus special cells */
    bool has_special;
} Run;

/* Discard the runs of the previous tree. */
Status runs_open(Writer *writer, const Tree *tree);

/* Return the number + 1 of the run below a cell, 0 if there is none; if `*is_known` is false, that
   is not known yet, and `run_make` determines it. */
uint32_t run_find(const Writer *writer, const Tree *tree, uint32_t cell, bool *is_known);
Status run_make(Writer *writer, const Tree *tree, uint32_t cell);

static inline const Run *run_at(const Writer *writer, uint32_t run)
{
    return (const Run *)writer->runs.data + (run - 1);
}

/* Write a part of a run, or the references of its root, to a bag with `count` cells. */
uint8_t *write_part(const Writer *writer, const Local *local, unsigned part, uint32_t count,
                    uint8_t *to);
uint8_t *write_kids(const Writer *writer, const Local *local, uint32_t count, uint8_t *to);

#endif
