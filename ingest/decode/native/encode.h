/* Encodes rows as the bits of a transaction's cells, like ingest/decode/block/encode.py. A value
   that is missing, or does not fit its field, makes the bits fail. */
#ifndef TONLAKE_ENCODE_H
#define TONLAKE_ENCODE_H

#include "bits.h"
#include "table.h"

#define OUT_KEY_BITS 15

/* Write all bits left in a slice. */
void put_rest(Bits *bits, Slice *slice);

/* Write transaction$0111 with three references; fees have no extra currencies. */
void put_root(Bits *bits, const Row_transactions *row);

/* Write HASH_UPDATE of the account. */
void put_update(Bits *bits, const Row_transactions *row);

/* ^[in_msg:(Maybe ^Message) out_msgs:(HashmapE 15 ^Message)]. */
void put_holder(Bits *bits, bool has_in, bool has_out);

/* Write a node of HashmapE 15 ^Message for the keys `first` to `last`, which differ only in the
   last `left` bits. Return how many bits are left for its children: `out_map_fork` is then the
   first key after the fork; 0 for a leaf. */
unsigned put_out_node(Bits *bits, uint32_t first, uint32_t last, unsigned left);

static inline uint32_t out_map_fork(uint32_t last, unsigned rest)
{
    return last >> (rest - 1) << (rest - 1);
}

/* Write TransactionDescr of kind ord or tick_tock; all others fail. */
void put_description(Bits *bits, const Row_transactions *row);

/* Return whether the description refers to a cell of tr_phase_compute_vm, before one of
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

/* Write CommonMsgInfo; `external` is the addr_extern of an external message, or NULL. */
void put_info(Bits *bits, const Row_messages *row, const Slice *external);

#endif
