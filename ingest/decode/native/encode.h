/* What rows say, as the bits of a transaction's cells: ingest/decode/block/encode.py does the same. A value
   that is missing, or that its field cannot hold, makes the bits fail. */
#ifndef TONLAKE_ENCODE_H
#define TONLAKE_ENCODE_H

#include "bits.h"
#include "table.h"

#define OUT_KEY_BITS 15

/* All bits that are left in a slice. */
void put_rest(Bits *bits, Slice *slice);

/* transaction$0111 over three cells: fees have no extra currencies. */
void put_root(Bits *bits, const Row_transactions *row);

/* HASH_UPDATE of the account. */
void put_update(Bits *bits, const Row_transactions *row);

/* ^[in_msg:(Maybe ^Message) out_msgs:(HashmapE 15 ^Message)]. */
void put_holder(Bits *bits, bool has_in, bool has_out);

/* A node of HashmapE 15 ^Message over the keys `first` to `last`, which differ in the last `left`
   bits alone. Returns how many bits are left for what is below it: the first of the keys after the
   fork is then `out_map_fork`; 0 for a leaf. */
unsigned put_out_node(Bits *bits, uint32_t first, uint32_t last, unsigned left);

static inline uint32_t out_map_fork(uint32_t last, unsigned rest)
{
    return last >> (rest - 1) << (rest - 1);
}

/* TransactionDescr of kind ord or tick_tock; all others fail. */
void put_description(Bits *bits, const Row_transactions *row);

/* Whether the description refers to a cell of tr_phase_compute_vm, and behind it to one of
   TrActionPhase. */
static inline bool has_run_cell(const Row_transactions *row)
{
    return !row->compute_skipped;
}

static inline bool has_action_cell(const Row_transactions *row)
{
    return row->has_action_success;
}

void put_run(Bits *bits, const Row_transactions *row);
void put_action(Bits *bits, const Row_transactions *row);

/* CommonMsgInfo; `external` is the addr_extern of an external message, NULL where none is given. */
void put_info(Bits *bits, const Row_messages *row, const Slice *external);

#endif
