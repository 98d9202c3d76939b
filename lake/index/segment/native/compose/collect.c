/* Processes a part account by account: rows become records, keys and numbers. */
#include "composer.h"

/* Up to this many states of an account are searched from last to first; more get a map. */
enum { FEW_STATES = 16 };

static const uint8_t zeroes[HASH_BYTES];

/* The target: a segment, with its records; the source: a part. */
typedef struct {
    Composer *composer;
    Part *part;
    Growing *records;
} Work;

static const uint8_t *hash_or_null(const Table *table, int column, Place place)
{
    return is_null_at(table, column, place) ? NULL : hash_at(table, column, place);
}

static const State *state_at(const Part *part, size_t at)
{
    return &part->states[part->state_order[at].at];
}

/* Build the map of an account's states, if there are many; the last of each hash wins. */
static void map_states(const Work *work, Span states)
{
    Map *map = &work->part->by_hash;
    map_clear(map);
    if (states.end - states.start <= FEW_STATES)
        return;
    for (size_t at = states.start; at < states.end; at++) {
        Bytes key = {state_at(work->part, at)->hash, HASH_BYTES};
        uint64_t hash = map_hash(map, key);
        Entry *entry = map_find(map, key, hash);
        if (entry)
            entry->value = at;
        else if (!map_add(map, key, hash, at, false))
            work->composer->broken = true;
    }
}

/* Find the last state with a hash among those of an account. */
static const State *find_state(const Part *part, Span states, const uint8_t *hash)
{
    if (!hash)
        return NULL;
    if (states.end - states.start > FEW_STATES) {
        Bytes key = {hash, HASH_BYTES};
        const Entry *entry = map_find(&part->by_hash, key, map_hash(&part->by_hash, key));
        return entry ? state_at(part, entry->value) : NULL;
    }
    for (size_t at = states.end; at-- > states.start;)
        if (memcmp(state_at(part, at)->hash, hash, HASH_BYTES) == 0)
            return state_at(part, at);
    return NULL;
}

static bool is_consumed(const Table *table, Place message)
{
    Bytes direction = bytes_of(cells_of(table, MSG_DIRECTION, message), TEXT, message.row);
    return direction.size && direction.data[0] == 'i';
}

/* Raise one of the longest waits. */
static void raise_wait(Composer *composer, size_t at, int64_t created, int64_t consumed)
{
    uint64_t *waits = (uint64_t *)(void *)composer->wait.data;
    uint64_t wait = (uint64_t)consumed - (uint64_t)created;
    wait = wait > INT64_MAX ? INT64_MAX : wait;
    if (waits && created < consumed && waits[at] < wait)
        waits[at] = wait;
}

static void add_wait(Composer *composer, const Table *table, Place message, int64_t lt, int64_t now)
{
    if (!is_null_at(table, MSG_CREATED, message))
        raise_wait(composer, 0, integer_at(table, MSG_CREATED, message), lt);
    if (!is_null_at(table, MSG_CREATED_AT, message))
        raise_wait(composer, 1, integer_at(table, MSG_CREATED_AT, message), now);
}

static void add_end(Composer *composer, const Table *table, Place message, uint32_t row,
                    uint32_t place)
{
    const uint8_t *source = hash_or_null(table, MSG_SOURCE, message);
    const uint8_t *destination = hash_or_null(table, MSG_DESTINATION, message);
    bool by_source = source && is_consumed(table, message);
    const uint8_t *peer = by_source ? source : destination;
    const uint8_t *hash = hash_at(table, MSG_HASH, message);
    const uint8_t *norm = hash_or_null(table, MSG_NORM, message);
    bool has_opcode = !is_null_at(table, MSG_OPCODE, message);
    bool was_made = !is_null_at(table, MSG_CREATED, message);
    const End end = {
        .hash = cut_hash(hash),
        .check = cut_hash(hash + KEY_BYTES),
        .body = cut_hash(hash_at(table, MSG_BODY_HASH, message)),
        .opcode = has_opcode ? (uint32_t)integer_at(table, MSG_OPCODE, message) : NO_OPCODE,
        .peer = peer ? cut_hash(peer) : 0,
        .created = was_made ? integer_at(table, MSG_CREATED, message) : NO_LT,
        .created_at = is_null_at(table, MSG_CREATED_AT, message)
                          ? NO_LT
                          : integer_at(table, MSG_CREATED_AT, message),
        .row = row,
        .place = place,
        .is_source = !is_consumed(table, message),
        .peer_kind = !peer ? NO_PEER : by_source ? FROM_PEER : TO_PEER,
    };
    append(&composer->ends, &end, sizeof end);
    if (norm && memcmp(norm, hash, HASH_BYTES) != 0) {
        append_word(&composer->norms, cut_hash(norm));
        append_word(&composer->norm_rows, row);
    }
}

/* Append the trace of a transaction, and the sender of its inbound message; zeroes: unknown. */
static void add_trace(const Work *work, const uint8_t *tx_hash)
{
    const Part *part = work->part;
    const Table *table = &part->tables[TRACED];
    const Bytes key = {tx_hash, HASH_BYTES};
    const Entry *entry = map_find(&part->traced, key, map_hash(&part->traced, key));
    const uint8_t *id = zeroes, *parent = NULL;
    if (entry) {
        Place place = {(uint32_t)(entry->value >> 32), (uint32_t)entry->value};
        id = hash_at(table, TRACED_ID, place);
        parent = hash_or_null(table, TRACED_PARENT, place);
    }
    append(&work->composer->trace_id, id, HASH_BYTES);
    append(&work->composer->parent_hash, parent ? parent : zeroes, HASH_BYTES);
}

static void add_numbers(Composer *composer, const Table *table, const Transaction *transaction)
{
    Place place = transaction->place;
    uint64_t row = count_words(&composer->lt);
    append(&composer->hash, transaction->hash, HASH_BYTES);
    append(&composer->hash_after, transaction->after, HASH_BYTES);
    append_word(&composer->lt, (uint64_t)transaction->lt);
    append_word(&composer->now, (uint64_t)integer_at(table, TX_NOW, place));
    append_word(&composer->mc_seqno, (uint64_t)integer_at(table, TX_MC_SEQNO, place));
    const Cells *aborted = cells_of(table, TX_ABORTED, place);
    if (!is_null(aborted, place.row) && bit_of(aborted, place.row))
        append_word(&composer->failed, row);
}

static void encode_state(const Work *work, const State *state, const Around *around)
{
    if (state)
        encode_row(&work->composer->encoder, work->records, &work->composer->layouts[FACTS],
                   &work->part->tables[STATES], state->place, around, SHAPED);
    else
        append_number(work->records, NO_STATE);
}

/* Append a record: the states after and before, the transaction, its messages. */
static void encode_record(const Work *work, const Transaction *transaction,
                          const Transaction *before, Span states)
{
    Composer *composer = work->composer;
    const Part *part = work->part;
    const Table *table = &part->tables[TRANSACTIONS];
    const uint8_t *hash_before = hash_or_null(table, TX_BEFORE, transaction->place);
    Around around = {
        .account = transaction->account,
        .hash_before = before ? before->hash : NULL,
        .state_before = before ? before->after : NULL,
        .lt = transaction->lt,
        .lt_before = before ? before->lt : transaction->lt,
        .now = integer_at(table, TX_NOW, transaction->place),
    };
    size_t start = work->records->size;
    encode_state(work, find_state(part, states, transaction->after), &around);
    if (before && hash_before && memcmp(before->after, hash_before, HASH_BYTES) == 0)
        append_number(work->records, SAME_STATE);
    else
        encode_state(work, find_state(part, states, hash_before), &around);
    encode_row(&composer->encoder, work->records, &composer->layouts[TRANSACTION], table,
               transaction->place, &around, 0);
    around.in_hash = hash_or_null(table, TX_IN_HASH, transaction->place);
    Span messages = part->groups[transaction->group];
    append_number(work->records, messages.end - messages.start);
    for (size_t at = messages.start; at < messages.end; at++)
        encode_row(&composer->encoder, work->records, &composer->layouts[MESSAGE],
                   &part->tables[MESSAGES], part->messages[part->message_order[at].at], &around,
                   0);
    end_record(&composer->encoder, work->records, start);
}

static void add_transaction(const Work *work, const Transaction *transaction,
                            const Transaction *before, Span states)
{
    Composer *composer = work->composer;
    const Part *part = work->part;
    uint32_t row = (uint32_t)count_words(&composer->lt);
    Span messages = part->groups[transaction->group];
    const Table *table = &part->tables[MESSAGES];
    int64_t now = integer_at(&part->tables[TRANSACTIONS], TX_NOW, transaction->place);
    for (size_t at = messages.start; at < messages.end; at++) {
        Place message = part->messages[part->message_order[at].at];
        add_end(composer, table, message, row, (uint32_t)(at - messages.start));
        if (is_consumed(table, message))
            add_wait(composer, table, message, transaction->lt, now);
    }
    add_trace(work, transaction->hash);
    add_numbers(composer, &part->tables[TRANSACTIONS], transaction);
    append_word(&composer->record_at, composer->encoder.at);
    encode_record(work, transaction, before, states);
}

/* Append the newest state of an account, which is outside of the records. */
static void add_newest(const Work *work, Span states, const Transaction *last)
{
    Composer *composer = work->composer;
    int64_t balance = 0;
    if (states.start < states.end) {
        const State *newest = state_at(work->part, states.end - 1);
        const Table *table = &work->part->tables[STATES];
        int64_t lt = last ? last->lt : 0;
        const Around around = {
            .hash_before = last ? last->hash : NULL,
            .state_before = last ? last->after : NULL,
            .lt = lt,
            .lt_before = lt,
        };
        balance = integer_at(table, STATE_BALANCE, newest->place);
        encode_row(&composer->encoder, &composer->state, &composer->layouts[STATE], table,
                   newest->place, &around, 0);
        end_row(&composer->encoder);
    }
    append_word(&composer->balance, (uint64_t)balance);
    append_word(&composer->state_at, composer->state.size);
}

static void add_account(const Work *work, const uint8_t *account, int32_t workchain, Span rows,
                        Span states)
{
    Composer *composer = work->composer;
    const Part *part = work->part;
    uint32_t biased = (uint32_t)workchain ^ 0x80000000;
    uint8_t last[] = {(uint8_t)(biased >> 24), (uint8_t)(biased >> 16), (uint8_t)(biased >> 8),
                      (uint8_t)biased};
    append(&composer->account_id, account, HASH_BYTES);
    append(&composer->account_id, last, sizeof last);
    append_word(&composer->account_row, count_words(&composer->lt));
    map_states(work, states);
    const Transaction *before = NULL;
    for (size_t at = rows.start; at < rows.end; at++) {
        const Transaction *transaction = &part->transactions[part->order[at].at];
        add_transaction(work, transaction, before, states);
        before = transaction;
    }
    add_newest(work, states, before);
}

/* Return the end of the rows of the account at `at`. */
static size_t end_of_rows(const Part *part, size_t at)
{
    const Transaction *first = &part->transactions[part->order[at].at];
    for (at++; at < part->tables[TRANSACTIONS].rows; at++) {
        const Transaction *next = &part->transactions[part->order[at].at];
        if (compare_accounts(first->account, first->workchain, next->account, next->workchain))
            break;
    }
    return at;
}

static size_t end_of_states(const Part *part, size_t at)
{
    const State *first = state_at(part, at);
    for (at++; at < part->tables[STATES].rows; at++) {
        const State *next = state_at(part, at);
        if (compare_accounts(first->account, first->workchain, next->account, next->workchain))
            break;
    }
    return at;
}

void compose_part(Composer *composer, Part *part, Growing *records)
{
    while (count_words(&composer->wait) < 2 && !composer->wait.failed)
        append_word(&composer->wait, 0);
    const Work work = {composer, part, records};
    size_t rows = part->tables[TRANSACTIONS].rows, states = part->tables[STATES].rows;
    for (Span row = {0, 0}, state = {0, 0}; row.end < rows || state.end < states;) {
        const Transaction *transaction =
            row.end < rows ? &part->transactions[part->order[row.end].at] : NULL;
        const State *other = state.end < states ? state_at(part, state.end) : NULL;
        int order = !other         ? -1
                    : !transaction ? 1
                                   : compare_accounts(transaction->account, transaction->workchain,
                                                      other->account, other->workchain);
        row = (Span){row.end, order <= 0 ? end_of_rows(part, row.end) : row.end};
        state = (Span){state.end, order >= 0 ? end_of_states(part, state.end) : state.end};
        add_account(&work, order <= 0 ? transaction->account : other->account,
                    order <= 0 ? transaction->workchain : other->workchain, row, state);
    }
}
