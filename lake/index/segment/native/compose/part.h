/* Rows of some accounts, joined: transactions with their messages, states and traces. */
#ifndef TONLAKE_PART_H
#define TONLAKE_PART_H

#include "sort.h"
#include "table.h"

/* Tables of a part, in the order in which they are passed, and complete traces. */
typedef enum { TRANSACTIONS, MESSAGES, STATES, TRACED, PART_TABLES, TRACES = PART_TABLES, TABLES } TableName;

/* Columns that are read separately; those of the kinds of rows follow. */
enum { TX_WORKCHAIN, TX_ACCOUNT, TX_LT, TX_HASH, TX_NOW, TX_MC_SEQNO, TX_AFTER, TX_BEFORE,
       TX_IN_HASH, TX_ABORTED, TX_COLUMNS };
enum { MSG_TX_HASH, MSG_DIRECTION, MSG_INDEX, MSG_HASH, MSG_NORM, MSG_BODY_HASH, MSG_OPCODE,
       MSG_CREATED, MSG_CREATED_AT, MSG_SOURCE, MSG_DESTINATION, MSG_COLUMNS };
enum { STATE_WORKCHAIN, STATE_ACCOUNT, STATE_MC_SEQNO, STATE_BLOCK_SEQNO, STATE_HASH,
       STATE_BALANCE, STATE_COLUMNS };
enum { TRACED_HASH, TRACED_ID, TRACED_PARENT, TRACED_COLUMNS };
enum { TRACE_ID, TRACE_COLUMNS };

typedef struct {
    const Asked *columns;
    int count;
} Plan;

extern const Plan plans[TABLES];

typedef struct {
    const uint8_t *account, *hash, *after;
    int64_t lt;
    int32_t workchain;
    uint32_t group; /* of its messages */
    Place place;
} Transaction;

typedef struct {
    const uint8_t *account, *hash;
    int64_t mc_seqno, block_seqno;
    int32_t workchain;
    Place place;
} State;

/* A range of items. */
typedef struct {
    size_t start, end;
} Span;

typedef struct {
    Table tables[PART_TABLES];
    Transaction *transactions;
    Keyed *order; /* of transactions: by account, workchain and logical time */
    State *states;
    Keyed *state_order; /* by account, workchain and block */
    Place *messages;
    Keyed *message_order; /* by group, direction and place */
    Span *groups;         /* of messages, in their order */
    Map traced;           /* by transaction hash: batch and row, 32 bits each */
    Map by_hash;          /* states of one account that has many */
} Part;

/* Order and join the tables of a part; false without memory. */
bool join_part(Part *part);
void free_part(Part *part);

/* Compare accounts as segments order them: bytes first, then workchain. */
int compare_accounts(const uint8_t *first, int32_t first_workchain, const uint8_t *second,
                     int32_t second_workchain);

#endif
