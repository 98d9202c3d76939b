#include "table.h"

#define WORD_TEXT(word) #word,
const char WORDS[WORD_COUNT][MAX_WORD_BYTES] = {ALL_WORDS(WORD_TEXT) "int", "extern"};

#define WORD_SIZE(word) sizeof #word - 1,
const uint8_t WORD_SIZES[WORD_COUNT] = {
    ALL_WORDS(WORD_SIZE) sizeof "int" - 1, sizeof "extern" - 1};

#define KIND_TEXT(kind, type) #kind,
const char *const KINDS[KIND_COUNT] = {ALL_KINDS(KIND_TEXT)};

/* Sort keys: bytes that compare like the columns. */

static uint8_t *key_number(uint8_t *key, int64_t value)
{
    uint64_t biased = (uint64_t)value ^ 1ULL << 63;
    store_be32(key, (uint32_t)(biased >> 32));
    store_be32(key + 4, (uint32_t)biased);
    return key + 8;
}

static uint8_t *key_hash(uint8_t *key, const Hash *hash)
{
    memcpy(key, hash->bytes, HASH_BYTES);
    return key + HASH_BYTES;
}

static void key_blocks(const void *from, uint8_t *key)
{
    const Row_blocks *row = from;
    key = key_number(key, row->mc_seqno);
    key = key_number(key, row->workchain);
    key = key_number(key, row->shard);
    key_number(key, row->seqno);
}

static void key_shard_blocks(const void *from, uint8_t *key)
{
    const Row_shard_blocks *row = from;
    key = key_number(key, row->mc_seqno);
    key = key_number(key, row->workchain);
    key_number(key, row->shard);
}

static void key_transactions(const void *from, uint8_t *key)
{
    const Row_transactions *row = from;
    key = key_number(key, row->lt);
    key = key_number(key, row->workchain);
    key_hash(key, &row->account);
}

static void key_messages(const void *from, uint8_t *key)
{
    const Row_messages *row = from;
    key = key_number(key, row->tx_lt);
    key = key_number(key, row->tx_workchain);
    key = key_hash(key, &row->tx_account);
    /* "in" comes before "out" */
    key_number(key, (int64_t)(row->direction == WORD_out) << 32 | row->msg_index);
}

static void key_account_states(const void *from, uint8_t *key)
{
    const Row_account_states *row = from;
    key = key_number(key, row->workchain);
    key = key_hash(key, &row->account);
    key = key_number(key, row->mc_seqno);
    key_number(key, row->block_seqno);
}

static void key_state_cells(const void *from, uint8_t *key)
{
    key_hash(key, &((const Row_state_cells *)from)->hash);
}

static void key_config_params(const void *from, uint8_t *key)
{
    const Row_config_params *row = from;
    key_number(key_number(key, row->mc_seqno), row->param);
}

static void key_libraries(const void *from, uint8_t *key)
{
    const Row_libraries *row = from;
    key_hash(key_number(key, row->mc_seqno), &row->hash);
}

static void key_queue_sizes(const void *from, uint8_t *key)
{
    const Row_queue_sizes *row = from;
    key = key_number(key, row->mc_seqno);
    key = key_number(key, row->workchain);
    key = key_number(key, row->shard);
    key_number(key, row->seqno);
}

enum {
    KEY_blocks = 32,
    KEY_shard_blocks = 24,
    KEY_transactions = 16 + HASH_BYTES,
    KEY_messages = 24 + HASH_BYTES,
    KEY_account_states = 24 + HASH_BYTES,
    KEY_state_cells = HASH_BYTES,
    KEY_config_params = 16,
    KEY_libraries = 8 + HASH_BYTES,
    KEY_queue_sizes = 32,
};

#define COLUMN(column, kind) {#column, KIND_##kind, offsetof(ROW_OF, column), \
                              offsetof(ROW_OF, has_##column)},
#define ROW_OF Row_blocks
static const Column COLUMNS_blocks[] = {BLOCKS_COLUMNS(COLUMN)};
#undef ROW_OF
#define ROW_OF Row_shard_blocks
static const Column COLUMNS_shard_blocks[] = {SHARD_BLOCKS_COLUMNS(COLUMN)};
#undef ROW_OF
#define ROW_OF Row_transactions
static const Column COLUMNS_transactions[] = {TRANSACTIONS_COLUMNS(COLUMN)};
#undef ROW_OF
#define ROW_OF Row_messages
static const Column COLUMNS_messages[] = {MESSAGES_COLUMNS(COLUMN)};
#undef ROW_OF
#define ROW_OF Row_account_states
static const Column COLUMNS_account_states[] = {ACCOUNT_STATES_COLUMNS(COLUMN)};
#undef ROW_OF
#define ROW_OF Row_state_cells
static const Column COLUMNS_state_cells[] = {STATE_CELLS_COLUMNS(COLUMN)};
#undef ROW_OF
#define ROW_OF Row_config_params
static const Column COLUMNS_config_params[] = {CONFIG_PARAMS_COLUMNS(COLUMN)};
#undef ROW_OF
#define ROW_OF Row_libraries
static const Column COLUMNS_libraries[] = {LIBRARIES_COLUMNS(COLUMN)};
#undef ROW_OF
#define ROW_OF Row_queue_sizes
static const Column COLUMNS_queue_sizes[] = {QUEUE_SIZES_COLUMNS(COLUMN)};
#undef ROW_OF

#define LAYOUT(name, COLUMNS) \
    {#name, COLUMNS_##name, sizeof COLUMNS_##name / sizeof(Column), sizeof(Row_##name), \
     KEY_##name, key_##name},
const Layout LAYOUTS[TABLE_COUNT] = {ALL_TABLES(LAYOUT)};

#define FITS(name, COLUMNS) \
    _Static_assert(sizeof COLUMNS_##name / sizeof(Column) <= MAX_COLUMNS, #name " is too wide");
ALL_TABLES(FITS)

void *table_append(Table *table, TableName name)
{
    size_t row_bytes = LAYOUTS[name].row_bytes;
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 16;
        if (capacity > UINT32_MAX / 4)
            return NULL;
        uint8_t *rows = realloc(table->rows, capacity * row_bytes);
        if (!rows)
            return NULL;
        table->rows = rows;
        table->capacity = capacity;
        if (capacity * row_bytes >= LARGE_BYTES)
            advise_large(rows, capacity * row_bytes);
    }
    return memset(table->rows + table->count++ * row_bytes, 0, row_bytes);
}

void table_reset(Table *table)
{
    table->count = table->heap.size = 0;
}

void table_free(Table *table)
{
    free(table->rows);
    heap_free(&table->heap);
    *table = (Table){0};
}

/* Merge the sorted runs of length `width` in `from` pairwise. */
static void merge_runs(const uint8_t *keys, size_t key_bytes, const uint32_t *from, uint32_t *to,
                       size_t count, size_t width)
{
    for (size_t start = 0; start < count; start += 2 * width) {
        size_t left = start, middle = start + width < count ? start + width : count;
        size_t right = middle, end = middle + width < count ? middle + width : count;
        while (left < middle && right < end) {
            const uint8_t *a = keys + from[left] * key_bytes, *b = keys + from[right] * key_bytes;
            uint64_t x = load_be64(a), y = load_be64(b); /* usually sufficient */
            bool is_left = x != y ? x < y : memcmp(a, b, key_bytes) <= 0;
            *to++ = is_left ? from[left++] : from[right++];
        }
        while (left < middle)
            *to++ = from[left++];
        while (right < end)
            *to++ = from[right++];
    }
}

Status table_sort(const Table *table, TableName name, uint32_t **order)
{
    const Layout *layout = &LAYOUTS[name];
    size_t count = table->count;
    uint8_t *keys = malloc(count * layout->key_bytes + 1);
    uint32_t *one = malloc((count + 1) * sizeof *one), *two = malloc((count + 1) * sizeof *two);
    bool sorted = true;
    *order = one;
    if (keys && one && two) {
        for (size_t i = 0; i < count; i++) {
            uint8_t *key = keys + i * layout->key_bytes;
            layout->write_key(table->rows + i * layout->row_bytes, key);
            one[i] = (uint32_t)i;
            sorted &= !i || memcmp(key - layout->key_bytes, key, layout->key_bytes) <= 0;
        }
        for (size_t width = 1; !sorted && width < count; width *= 2) {
            merge_runs(keys, layout->key_bytes, one, two, count, width);
            uint32_t *swap = one;
            one = two;
            two = swap;
        }
    }
    Status status = keys && one && two ? DONE : NO_MEMORY;
    *order = one;
    free(two);
    free(keys);
    return status;
}
