/* Derives data from all rows of a segment: rows of traces, order of accounts, keys of postings. */
#include "composer.h"
#include "words.h"

#include <stdlib.h>

/* The first row of each key, in an open-addressing hash table. */
typedef struct {
    uint32_t *rows; /* counted from 1; 0: free */
    uint64_t mask, secret;
    const Composer *composer;
} Index;

static const uint8_t *hash_of_row(const Composer *composer, size_t row)
{
    return composer->hash.data + row * HASH_BYTES;
}

static uint64_t first_place(const Index *index, uint64_t key)
{
    uint64_t mixed = (key ^ index->secret) * 0x9e3779b97f4a7c15;
    return (mixed ^ mixed >> 32) & index->mask;
}

/* Find the first row whose hash has a key, counted from 1; 0: none. `place` is its position
   in the table, or the free one for it. */
static uint32_t find_key(const Index *index, uint64_t key, uint64_t *place)
{
    uint64_t at = first_place(index, key);
    while (index->rows[at] && cut_hash(hash_of_row(index->composer, index->rows[at] - 1)) != key)
        at = (at + 1) & index->mask;
    *place = at;
    return index->rows[at];
}

static bool open_index(const Composer *composer, Index *index)
{
    size_t rows = count_words(&composer->lt);
    uint64_t room = 64, place;
    while (room < 2 * rows)
        room *= 2;
    *index = (Index){calloc(room, sizeof *index->rows), room - 1,
                     composer->encoder.seen.secret[0], composer};
    for (size_t row = 0; index->rows && row < rows; row++)
        if (!find_key(index, cut_hash(hash_of_row(composer, row)), &place))
            index->rows[place] = (uint32_t)row + 1;
    return index->rows != NULL;
}

/* Return the row of a transaction, counted from 1; 0: it is not in the segment. */
static uint32_t find_row(const Index *index, const uint8_t *hash)
{
    uint64_t place;
    uint32_t row = find_key(index, cut_hash(hash), &place);
    return row && memcmp(hash_of_row(index->composer, row - 1), hash, HASH_BYTES) == 0 ? row : 0;
}

static bool is_zero(const uint8_t *hash)
{
    static const uint8_t zeroes[HASH_BYTES];
    return memcmp(hash, zeroes, HASH_BYTES) == 0;
}

/* Append the row of each hash, or its index among those of other segments. */
static bool find_rows(const Index *index, const Growing *hashes, Map *others, Growing *found,
                      Growing *other)
{
    size_t rows = count_words(&index->composer->lt);
    for (size_t at = 0; at < hashes->size; at += HASH_BYTES) {
        Bytes hash = {hashes->data + at, HASH_BYTES};
        uint64_t number = find_row(index, hash.data);
        if (!number && !is_zero(hash.data)) {
            uint64_t secret = map_hash(others, hash);
            const Entry *entry = map_find(others, hash, secret);
            number = entry ? entry->value : rows + others->count + 1;
            if (!entry) {
                if (!map_add(others, hash, secret, number, false))
                    return false;
                append(other, hash.data, HASH_BYTES);
            }
        }
        append_word(found, number);
    }
    return true;
}

static int compare_ids(const void *context, uint32_t first, uint32_t second)
{
    const uint8_t *const *ids = context;
    return memcmp(ids[first], ids[second], HASH_BYTES);
}

/* Append a complete trace: the row of its root, or its hash, and its columns. */
static void add_ended(Composer *composer, const Index *index, const Table *traces, Place place)
{
    const uint8_t *id = hash_at(traces, TRACE_ID, place);
    uint32_t row = find_row(index, id);
    Around around = {.lt = 0};
    append_number(&composer->ended_data, row);
    if (row) {
        around.lt = around.lt_before = (int64_t)word_at(&composer->lt, row - 1);
        around.now = (int64_t)word_at(&composer->now, row - 1);
    } else {
        append(&composer->ended_data, id, HASH_BYTES);
    }
    encode_row(&composer->encoder, &composer->ended_data, &composer->layouts[TRACE], traces, place,
               &around, 0);
    end_row(&composer->encoder);
    append_word(&composer->ended_key, cut_hash(id));
    append_word(&composer->ended_at, composer->ended_data.size);
}

static bool add_all_ended(Composer *composer, const Index *index, const Table *traces)
{
    Place *places = table_places(traces);
    const uint8_t **ids = malloc((traces->rows + 1) * sizeof *ids);
    Keyed *order = malloc((traces->rows + 1) * sizeof *order);
    bool sorted = false;
    if (places && ids && order) {
        for (uint32_t at = 0; at < traces->rows; at++) {
            ids[at] = hash_at(traces, TRACE_ID, places[at]);
            order[at] = (Keyed){cut_hash(ids[at]), at};
        }
        sorted = sort_keyed(order, traces->rows, compare_ids, ids);
    }
    append_word(&composer->ended_at, 0);
    for (size_t at = 0; sorted && at < traces->rows; at++)
        add_ended(composer, index, traces, places[order[at].at]);
    free(places);
    free(ids);
    free(order);
    return sorted;
}

void compose_traces(Composer *composer, const Table *traces)
{
    Index index;
    Map others = {.secret = {composer->encoder.seen.secret[0], composer->encoder.seen.secret[1]}};
    append_word(&composer->account_row, count_words(&composer->lt));
    append_word(&composer->record_at, composer->encoder.at);
    if (!open_index(composer, &index) ||
        !find_rows(&index, &composer->trace_id, &others, &composer->root, &composer->other) ||
        !find_rows(&index, &composer->parent_hash, &others, &composer->parent,
                   &composer->other) ||
        !add_all_ended(composer, &index, traces))
        composer->broken = true;
    free(index.rows);
    map_clear(&others);
    map_clear(&composer->encoder.seen); /* all rows are written: free memory for sorting */
}

static int compare_balances(const void *context, uint32_t first, uint32_t second)
{
    const Composer *composer = context;
    const uint8_t *left = composer->account_id.data + (size_t)first * ACCOUNT_ID_BYTES;
    const uint8_t *right = composer->account_id.data + (size_t)second * ACCOUNT_ID_BYTES;
    int order = memcmp(left + HASH_BYTES, right + HASH_BYTES, ACCOUNT_ID_BYTES - HASH_BYTES);
    return order ? order : memcmp(left, right, HASH_BYTES);
}

bool order_by_balance(const Composer *composer, Growing *order)
{
    size_t accounts = count_words(&composer->balance), count = 0;
    Keyed *items = malloc((accounts + 1) * sizeof *items);
    if (!items)
        return false;
    for (uint32_t at = 0; at < accounts; at++)
        if (word_at(&composer->state_at, at + 1) > word_at(&composer->state_at, at)) {
            uint64_t rank = word_at(&composer->balance, at) ^ (uint64_t)1 << 63;
            items[count++] = (Keyed){~rank, at};
        }
    bool sorted = sort_keyed(items, count, compare_balances, composer);
    for (size_t at = 0; sorted && at < count; at++)
        append_word(order, items[at].at);
    free(items);
    return sorted;
}

/* The ends of messages: by hash, then by normalized hash; or by opcode or body. */
static int collect_ends(const Composer *composer, const char *name, Columns *columns)
{
    const End *ends = (const End *)(const void *)composer->ends.data;
    size_t count = composer->ends.size / sizeof *ends;
    bool by_hash = strcmp(name, "message") == 0, by_opcode = strcmp(name, "opcode") == 0;
    for (size_t at = 0; at < count; at++) {
        const End *end = &ends[at];
        if (by_hash)
            add_row(columns, 2, (uint64_t[]){end->hash, end->row});
        else if (!by_opcode || end->opcode != NO_OPCODE)
            add_end_row(columns, by_opcode ? end->opcode : end->body, end);
    }
    for (size_t at = 0; by_hash && at < count_words(&composer->norms); at++)
        add_row(columns, 2,
                (uint64_t[]){word_at(&composer->norms, at), word_at(&composer->norm_rows, at)});
    return by_hash ? 2 : END_COLUMNS;
}

static int collect_some(const Composer *composer, const char *name, Columns *columns)
{
    bool is_alone = strncmp(name, "alone_", 6) == 0;
    if (!(is_alone ? list_alone : list_again)(composer, name, columns))
        columns->words[0].failed = true;
    return END_COLUMNS;
}

/* The rows of transactions, by a key of each. */
static int collect_rows(const Composer *composer, const char *name, Columns *columns)
{
    bool by_hash = strcmp(name, "transaction") == 0, by_trace = strcmp(name, "trace") == 0;
    for (size_t row = 0; row < count_words(&composer->lt); row++) {
        uint64_t lt = word_at(&composer->lt, row);
        if (by_hash)
            add_row(columns, 2, (uint64_t[]){cut_hash(hash_of_row(composer, row)), row});
        else if (!by_trace)
            add_row(columns, 3, (uint64_t[]){word_at(&composer->mc_seqno, row), lt, row});
        else if (word_at(&composer->root, row))
            add_row(columns, 3,
                    (uint64_t[]){cut_hash(composer->trace_id.data + row * HASH_BYTES), lt, row});
    }
    return by_hash ? 2 : 3;
}

static int collect_failed(const Composer *composer, Columns *columns)
{
    for (size_t at = 0; at < count_words(&composer->failed); at++) {
        uint64_t row = word_at(&composer->failed, at);
        add_row(columns, 3,
                (uint64_t[]){word_at(&composer->now, row), word_at(&composer->lt, row), row});
    }
    return 3;
}

PyObject *collect_columns(const Composer *composer, const char *name)
{
    Columns columns = {0};
    bool of_rows = !strcmp(name, "transaction") || !strcmp(name, "block") || !strcmp(name, "trace");
    bool of_ends = !strcmp(name, "message") || !strcmp(name, "opcode") || !strcmp(name, "body");
    bool of_some = !strncmp(name, "alone_", 6) || !strcmp(name, "opcode_again") ||
                   !strcmp(name, "body_again");
    if (!of_rows && !of_ends && !of_some && strcmp(name, "failed") != 0)
        return PyErr_Format(PyExc_ValueError, "there are no postings %s", name);
    int count;
    Py_BEGIN_ALLOW_THREADS
    count = of_rows   ? collect_rows(composer, name, &columns)
            : of_ends ? collect_ends(composer, name, &columns)
            : of_some ? collect_some(composer, name, &columns)
                      : collect_failed(composer, &columns);
    Py_END_ALLOW_THREADS
    /* With more than two columns, the second is a logical time, which is signed. */
    PyObject *found = PyTuple_New(count);
    for (int at = 0; at < count; at++) {
        PyObject *words = hand_over(&columns.words[at], at == 1 && count > 2 ? 'q' : 'Q');
        if (!found || !words || PyTuple_SetItem(found, at, words) < 0)
            Py_CLEAR(found);
    }
    return found;
}
