/* Sorts the tables of a part, and finds their rows by hash. */
#include "part.h"

#include <stdlib.h>

static const Asked of_transactions[] = {
    [TX_WORKCHAIN] = {"workchain", INTEGER, false},
    [TX_ACCOUNT] = {"account", HASH, false},
    [TX_LT] = {"lt", INTEGER, false},
    [TX_HASH] = {"hash", HASH, false},
    [TX_NOW] = {"now", INTEGER, false},
    [TX_MC_SEQNO] = {"mc_seqno", INTEGER, false},
    [TX_AFTER] = {"account_state_hash_after", HASH, false},
    [TX_BEFORE] = {"account_state_hash_before", HASH, true},
    [TX_IN_HASH] = {"in_msg_hash", HASH, true},
    [TX_ABORTED] = {"aborted", BITS, true},
};

static const Asked of_messages[] = {
    [MSG_TX_HASH] = {"tx_hash", HASH, false},     [MSG_DIRECTION] = {"direction", TEXT, false},
    [MSG_INDEX] = {"msg_index", INTEGER, false},  [MSG_HASH] = {"msg_hash", HASH, false},
    [MSG_NORM] = {"hash_norm", HASH, true},       [MSG_BODY_HASH] = {"body_hash", HASH, false},
    [MSG_OPCODE] = {"opcode", INTEGER, true},     [MSG_CREATED] = {"created_lt", INTEGER, true},
    [MSG_CREATED_AT] = {"created_at", INTEGER, true},
    [MSG_SOURCE] = {"source", HASH, true},
    [MSG_DESTINATION] = {"destination", HASH, true},
};

static const Asked of_states[] = {
    [STATE_WORKCHAIN] = {"workchain", INTEGER, false},
    [STATE_ACCOUNT] = {"account", HASH, false},
    [STATE_MC_SEQNO] = {"mc_seqno", INTEGER, false},
    [STATE_BLOCK_SEQNO] = {"block_seqno", INTEGER, false},
    [STATE_HASH] = {"hash", HASH, false},
    [STATE_BALANCE] = {"balance", INTEGER, false},
};

static const Asked of_traced[] = {
    [TRACED_HASH] = {"hash", HASH, false},
    [TRACED_ID] = {"trace_id", HASH, false},
    [TRACED_PARENT] = {"parent_hash", HASH, true},
};

static const Asked of_traces[] = {[TRACE_ID] = {"trace_id", HASH, false}};

const Plan plans[TABLES] = {
    [TRANSACTIONS] = {of_transactions, TX_COLUMNS},
    [MESSAGES] = {of_messages, MSG_COLUMNS},
    [STATES] = {of_states, STATE_COLUMNS},
    [TRACED] = {of_traced, TRACED_COLUMNS},
    [TRACES] = {of_traces, TRACE_COLUMNS},
};

static int compare_numbers(int64_t first, int64_t second)
{
    return (first > second) - (first < second);
}

int compare_accounts(const uint8_t *first, int32_t first_workchain, const uint8_t *second,
                     int32_t second_workchain)
{
    int order = memcmp(first, second, HASH_BYTES);
    return order ? order : compare_numbers(first_workchain, second_workchain);
}

static int compare_transactions(const void *context, uint32_t first, uint32_t second)
{
    const Transaction *left = &((const Part *)context)->transactions[first];
    const Transaction *right = &((const Part *)context)->transactions[second];
    int order =
        compare_accounts(left->account, left->workchain, right->account, right->workchain);
    return order ? order : compare_numbers(left->lt, right->lt);
}

static int compare_states(const void *context, uint32_t first, uint32_t second)
{
    const State *left = &((const Part *)context)->states[first];
    const State *right = &((const Part *)context)->states[second];
    int order =
        compare_accounts(left->account, left->workchain, right->account, right->workchain);
    order = order ? order : compare_numbers(left->mc_seqno, right->mc_seqno);
    return order ? order : compare_numbers(left->block_seqno, right->block_seqno);
}

static Bytes direction_of(const Part *part, uint32_t message)
{
    Place place = part->messages[message];
    return bytes_of(cells_of(&part->tables[MESSAGES], MSG_DIRECTION, place), TEXT, place.row);
}

static int compare_messages(const void *context, uint32_t first, uint32_t second)
{
    const Part *part = context;
    const Table *table = &part->tables[MESSAGES];
    Bytes left = direction_of(part, first), right = direction_of(part, second);
    int order = memcmp(left.data, right.data, left.size < right.size ? left.size : right.size);
    order = order ? order : compare_numbers((int64_t)left.size, (int64_t)right.size);
    return order ? order
                 : compare_numbers(integer_at(table, MSG_INDEX, part->messages[first]),
                                   integer_at(table, MSG_INDEX, part->messages[second]));
}

/* Allocate room for items, possibly none. */
static void *allocate(size_t count, size_t size)
{
    return malloc((count + 1) * size);
}

static bool order_transactions(Part *part)
{
    const Table *table = &part->tables[TRANSACTIONS];
    Place *places = table_places(table);
    part->transactions = allocate(table->rows, sizeof *part->transactions);
    part->order = allocate(table->rows, sizeof *part->order);
    if (!places || !part->transactions || !part->order) {
        free(places);
        return false;
    }
    for (uint32_t at = 0; at < table->rows; at++) {
        part->transactions[at] = (Transaction){
            .account = hash_at(table, TX_ACCOUNT, places[at]),
            .hash = hash_at(table, TX_HASH, places[at]),
            .after = hash_at(table, TX_AFTER, places[at]),
            .lt = integer_at(table, TX_LT, places[at]),
            .workchain = (int32_t)integer_at(table, TX_WORKCHAIN, places[at]),
            .place = places[at],
        };
        part->order[at] = (Keyed){cut_hash(part->transactions[at].account), at};
    }
    free(places);
    return sort_keyed(part->order, table->rows, compare_transactions, part);
}

static bool order_states(Part *part)
{
    const Table *table = &part->tables[STATES];
    Place *places = table_places(table);
    part->states = allocate(table->rows, sizeof *part->states);
    part->state_order = allocate(table->rows, sizeof *part->state_order);
    if (!places || !part->states || !part->state_order) {
        free(places);
        return false;
    }
    for (uint32_t at = 0; at < table->rows; at++) {
        part->states[at] = (State){
            .account = hash_at(table, STATE_ACCOUNT, places[at]),
            .hash = hash_at(table, STATE_HASH, places[at]),
            .mc_seqno = integer_at(table, STATE_MC_SEQNO, places[at]),
            .block_seqno = integer_at(table, STATE_BLOCK_SEQNO, places[at]),
            .workchain = (int32_t)integer_at(table, STATE_WORKCHAIN, places[at]),
            .place = places[at],
        };
        part->state_order[at] = (Keyed){cut_hash(part->states[at].account), at};
    }
    free(places);
    return sort_keyed(part->state_order, table->rows, compare_states, part);
}

/* Number the hashes of transactions; two with the same hash have the same messages. */
static bool number_groups(Part *part, Map *groups)
{
    for (size_t at = 0; at < part->tables[TRANSACTIONS].rows; at++) {
        Transaction *transaction = &part->transactions[at];
        Bytes key = {transaction->hash, HASH_BYTES};
        uint64_t hash = map_hash(groups, key);
        Entry *entry = map_find(groups, key, hash);
        transaction->group = (uint32_t)(entry ? entry->value : groups->count);
        if (!entry && !map_add(groups, key, hash, groups->count, false))
            return false;
    }
    return true;
}

static bool order_messages(Part *part, const Map *groups)
{
    const Table *table = &part->tables[MESSAGES];
    size_t count = 0;
    part->messages = table_places(table);
    part->message_order = allocate(table->rows, sizeof *part->message_order);
    part->groups = calloc(groups->count + 1, sizeof *part->groups);
    if (!part->messages || !part->message_order || !part->groups)
        return false;
    for (uint32_t at = 0; at < table->rows; at++) {
        Bytes key = {hash_at(table, MSG_TX_HASH, part->messages[at]), HASH_BYTES};
        const Entry *entry = map_find(groups, key, map_hash(groups, key));
        if (entry)
            part->message_order[count++] = (Keyed){entry->value, at};
    }
    if (!sort_keyed(part->message_order, count, compare_messages, part))
        return false;
    for (size_t at = 0; at < count; at++) {
        Span *group = &part->groups[part->message_order[at].key];
        if (!group->end)
            group->start = at;
        group->end = at + 1;
    }
    return true;
}

/* Index traces by transaction hash; of two with the same hash the last wins. */
static bool learn_traces(Part *part)
{
    const Table *table = &part->tables[TRACED];
    Place *places = table_places(table);
    bool learned = places != NULL;
    for (size_t at = 0; learned && at < table->rows; at++) {
        Bytes key = {hash_at(table, TRACED_HASH, places[at]), HASH_BYTES};
        uint64_t hash = map_hash(&part->traced, key);
        uint64_t value = (uint64_t)places[at].batch << 32 | places[at].row;
        Entry *entry = map_find(&part->traced, key, hash);
        if (entry)
            entry->value = value;
        else
            learned = map_add(&part->traced, key, hash, value, false);
    }
    free(places);
    return learned;
}

bool join_part(Part *part)
{
    Map groups = {.secret = {part->traced.secret[0], part->traced.secret[1]}};
    bool joined = order_transactions(part) && order_states(part) && number_groups(part, &groups) &&
                  order_messages(part, &groups) && learn_traces(part);
    map_clear(&groups);
    return joined;
}

void free_part(Part *part)
{
    for (int at = 0; at < PART_TABLES; at++)
        table_close(&part->tables[at]);
    free(part->transactions);
    free(part->order);
    free(part->states);
    free(part->state_order);
    free(part->messages);
    free(part->message_order);
    free(part->groups);
    map_clear(&part->traced);
    map_clear(&part->by_hash);
}
