/* The distinct accounts of a response, for its address book. */
#ifndef TONLAKE_API_ACCOUNTS_H
#define TONLAKE_API_ACCOUNTS_H

#include "../../../lake/index/segment/native/held.h"

typedef struct {
    int64_t workchain;
    uint8_t account[32];
} NamedAccount;

/* A hash table of accounts, and the Python set that new ones are added to. */
typedef struct {
    PyObject *named;        /* set of (workchain, account) to add to; may be NULL */
    NamedAccount *accounts; /* in order of appearance */
    uint32_t *places;       /* slots by hash: index in `accounts` plus 1; 0: empty */
    size_t count, room;     /* there are 2 * room slots; room is a power of two */
} Accounts;

/* Add an account. Return -1 on error. */
int note_account(Accounts *accounts, const Value *workchain, const Value *account);

void free_accounts(Accounts *accounts);

#endif
