/* Collects the accounts of a response; only the first occurrence of each creates Python objects. */
#include "accounts.h"

#include <string.h>

enum { FIRST_ROOM = 64 };

static int add_pair(PyObject *named, const Value *workchain, const Value *account)
{
    PyObject *id = make_object(workchain), *bytes = make_object(account);
    PyObject *pair = id && bytes ? PyTuple_Pack(2, id, bytes) : NULL;
    int failed = pair ? PySet_Add(named, pair) : -1;
    Py_XDECREF(id);
    Py_XDECREF(bytes);
    Py_XDECREF(pair);
    return failed;
}

/* Return the slot of an account, or the empty slot for it. Account ids serve as hashes. */
static uint32_t *find_place(const Accounts *accounts, const NamedAccount *account)
{
    uint64_t hash;
    memcpy(&hash, account->account, sizeof hash);
    for (size_t mask = 2 * accounts->room - 1, at = (size_t)hash & mask;; at = (at + 1) & mask) {
        uint32_t *place = &accounts->places[at];
        if (!*place || !memcmp(&accounts->accounts[*place - 1], account, sizeof *account))
            return place;
    }
}

static int grow(Accounts *accounts)
{
    size_t room = accounts->room ? 2 * accounts->room : FIRST_ROOM;
    void *grown = PyMem_Realloc(accounts->accounts, room * sizeof *accounts->accounts);
    if (grown)
        accounts->accounts = grown;
    uint32_t *places = PyMem_Calloc(2 * room, sizeof *places);
    if (!grown || !places || room > UINT32_MAX) {
        PyMem_Free(places);
        PyErr_NoMemory();
        return -1;
    }
    PyMem_Free(accounts->places);
    accounts->places = places;
    accounts->room = room;
    for (size_t at = 0; at < accounts->count; at++)
        *find_place(accounts, &accounts->accounts[at]) = (uint32_t)at + 1;
    return 0;
}

int note_account(Accounts *accounts, const Value *workchain, const Value *account)
{
    if (workchain->form != IS_NUMBER || account->form != IS_BYTES || account->size != 32)
        return add_pair(accounts->named, workchain, account);
    if (accounts->count == accounts->room && grow(accounts) < 0)
        return -1;
    NamedAccount *next = &accounts->accounts[accounts->count];
    next->workchain = workchain->number;
    memcpy(next->account, account->data, sizeof next->account);
    uint32_t *place = find_place(accounts, next);
    if (*place)
        return 0;
    *place = (uint32_t)++accounts->count;
    return add_pair(accounts->named, workchain, account);
}

void free_accounts(Accounts *accounts)
{
    PyMem_Free(accounts->accounts);
    PyMem_Free(accounts->places);
}
