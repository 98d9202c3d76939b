/* Converts rows to Arrow buffers. Rows are processed in tiles that stay in the cache while one
   column after another is read from them. */
#include "arrow.h"

#define TILE_ROWS 32
#define MAX_BUFFERS 3
/* Spare bytes after the values of variable length: whole words are copied. */
#define WORD_BYTES MAX_WORD_BYTES

/* Buffers of one column; `end` is the offset of the next value of variable length. */
typedef struct {
    const Column *column;
    size_t maps_bytes, offsets_bytes, values_bytes;
    uint8_t *validity, *values;
    int32_t *offsets;
    size_t null_count, end;
} Filling;

typedef struct {
    const uint8_t *rows[TILE_ROWS];
    const uint8_t *heap;
    size_t start, count;
} Tile;

/* Structures at the beginning of a slab, before the buffers. */
typedef struct {
    struct ArrowArray array;
    const void *buffers[MAX_BUFFERS];
    struct ArrowArray *child;
    struct ArrowArray hashes; /* the elements of a list */
    const void *hash_buffers[2];
} Child;

static size_t kind_bytes(Kind kind)
{
    static const size_t bytes[KIND_COUNT] = {
        [KIND_int8] = 1, [KIND_int32] = 4, [KIND_int64] = 8,
        [KIND_time] = 8, [KIND_hash] = HASH_BYTES, [KIND_amount] = 16,
    };
    return bytes[kind];
}

static bool has_offsets(Kind kind)
{
    return kind == KIND_text || kind == KIND_bytes || kind == KIND_json || kind == KIND_hashes;
}

/* Return the total size of a column's values. */
static size_t measure_values(const Table *table, size_t row_bytes, const Column *column)
{
    const uint8_t *row = table->rows;
    size_t total = WORD_BYTES, count = table->count;
    if (column->kind == KIND_bool)
        return (count + TILE_ROWS - 1) / TILE_ROWS * (TILE_ROWS / 8);
    if (!has_offsets(column->kind))
        return kind_bytes(column->kind) * count;
    for (size_t i = 0; i < count; i++, row += row_bytes) {
        Span span = {0};
        if (column->kind == KIND_text)
            span.size = row[column->presence] ? WORD_SIZES[row[column->value]] : 0;
        else
            memcpy(&span, row + column->value, sizeof span);
        total += span.size;
    }
    return total;
}

/* Compute the sizes of a column's buffers; false if they exceed the range of offsets. */
static bool measure_column(const Table *table, size_t row_bytes, const Column *column, Filling *to)
{
    size_t values = measure_values(table, row_bytes, column), rows = table->count;
    bool varies = has_offsets(column->kind);
    *to = (Filling){.column = column};
    to->maps_bytes = slab_round((rows + TILE_ROWS - 1) / TILE_ROWS * (TILE_ROWS / 8));
    to->offsets_bytes = varies ? slab_round((rows + 1) * sizeof(int32_t)) : 0;
    to->values_bytes = slab_round(values);
    return !varies || values - WORD_BYTES <= INT32_MAX;
}

/* Assign a column its buffers; return where those of the next one begin. */
static uint8_t *lay_out(uint8_t *at, Filling *filling)
{
    filling->validity = at;
    filling->offsets = (int32_t *)(at + filling->maps_bytes);
    filling->values = at + filling->maps_bytes + filling->offsets_bytes;
    if (filling->offsets_bytes)
        filling->offsets[0] = 0;
    return filling->values + filling->values_bytes;
}

/* Collect one bit from every row of the tile. */
static inline uint32_t gather_bits(const Tile *tile, size_t place)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < tile->count && i < TILE_ROWS; i++)
        bits |= (uint32_t)tile->rows[i][place] << i;
    return bits;
}

static inline void store_bits(uint8_t *map, size_t start, uint32_t bits)
{
    for (unsigned i = 0; i < TILE_ROWS / 8; i++)
        map[start / 8 + i] = (uint8_t)(bits >> 8 * i);
}

static inline void fill_fixed(const Tile *tile, Filling *to, size_t width)
{
    uint8_t *out = to->values + tile->start * width;
    size_t place = to->column->value;
    for (size_t i = 0; i < tile->count; i++, out += width)
        memcpy(out, tile->rows[i] + place, width);
}

static void fill_words(const Tile *tile, Filling *to)
{
    size_t end = to->end, place = to->column->value, presence = to->column->presence;
    for (size_t i = 0; i < tile->count; i++) {
        const uint8_t *row = tile->rows[i];
        if (row[presence]) {
            memcpy(to->values + end, WORDS[row[place]], WORD_BYTES);
            end += WORD_SIZES[row[place]];
        }
        to->offsets[tile->start + i + 1] = (int32_t)end;
    }
    to->end = end;
}

static void fill_spans(const Tile *tile, Filling *to, size_t unit)
{
    size_t end = to->end;
    for (size_t i = 0; i < tile->count; i++) {
        Span span;
        memcpy(&span, tile->rows[i] + to->column->value, sizeof span);
        if (span.size)
            memcpy(to->values + end, tile->heap + span.at, span.size);
        end += span.size;
        to->offsets[tile->start + i + 1] = (int32_t)(end / unit);
    }
    to->end = end;
}

static void fill_values(const Tile *tile, Filling *to)
{
    switch (to->column->kind) {
    case KIND_bool:
        store_bits(to->values, tile->start, gather_bits(tile, to->column->value));
        break;
    case KIND_int8:
        fill_fixed(tile, to, 1);
        break;
    case KIND_int32:
        fill_fixed(tile, to, 4);
        break;
    case KIND_int64:
    case KIND_time:
        fill_fixed(tile, to, 8);
        break;
    case KIND_hash:
        fill_fixed(tile, to, HASH_BYTES);
        break;
    case KIND_amount:
        fill_fixed(tile, to, sizeof(Amount));
        break;
    case KIND_text:
        fill_words(tile, to);
        break;
    default:
        fill_spans(tile, to, to->column->kind == KIND_hashes ? HASH_BYTES : 1);
    }
}

static void fill_tile(const Tile *tile, Filling *fillings, size_t count)
{
    for (size_t c = 0; c < count; c++) {
        uint32_t present = gather_bits(tile, fillings[c].column->presence);
        store_bits(fillings[c].validity, tile->start, present);
        fillings[c].null_count += tile->count - (size_t)__builtin_popcount(present);
        fill_values(tile, &fillings[c]);
    }
}

/* Fill all columns with the rows in the given order. */
static void fill_table(const Table *table, TableName name, const uint32_t *order, Filling *fillings)
{
    const Layout *layout = &LAYOUTS[name];
    Tile tile = {.heap = table->heap.data};
    for (; tile.start < table->count; tile.start += TILE_ROWS) {
        tile.count = table->count - tile.start;
        if (tile.count > TILE_ROWS)
            tile.count = TILE_ROWS;
        for (size_t i = 0; i < tile.count; i++)
            tile.rows[i] = table->rows + order[tile.start + i] * layout->row_bytes;
        fill_tile(&tile, fillings, layout->column_count);
    }
}

/* Every array is a user of the slab: Arrow may keep a single column of a table. */
static void release(struct ArrowArray *array)
{
    Slab *slab = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
    array->release = NULL;
    slab_drop(slab);
}

static struct ArrowArray make_array(Slab *slab, size_t length, const void **buffers, int64_t count)
{
    atomic_fetch_add(&slab->users, 1);
    return (struct ArrowArray){
        .length = (int64_t)length, .n_buffers = count, .buffers = buffers,
        .release = release, .private_data = slab,
    };
}

static void export_column(const Filling *from, size_t rows, Slab *slab, Child *to)
{
    Kind kind = from->column->kind;
    bool is_list = kind == KIND_hashes;
    to->buffers[0] = from->null_count ? from->validity : NULL;
    to->buffers[1] = has_offsets(kind) ? (const void *)from->offsets : from->values;
    to->buffers[2] = from->values;
    to->array = make_array(slab, rows, to->buffers, has_offsets(kind) && !is_list ? 3 : 2);
    to->array.null_count = (int64_t)from->null_count;
    if (!is_list)
        return;
    to->hash_buffers[0] = NULL;
    to->hash_buffers[1] = from->values;
    to->hashes = make_array(slab, from->end / HASH_BYTES, to->hash_buffers, 2);
    to->child = &to->hashes;
    to->array.children = &to->child;
    to->array.n_children = 1;
}

/* Beginning of a slab: the struct's only buffer, pointers to its children, the children. */
typedef struct {
    const void *buffers[1];
    struct ArrowArray *pointers[MAX_COLUMNS];
    Child children[MAX_COLUMNS];
} Head;

static void export_table(const Filling *fillings, size_t columns, size_t rows, Slab *slab,
                         struct ArrowArray *to)
{
    Head *head = (Head *)slab->data;
    head->buffers[0] = NULL;
    *to = make_array(slab, rows, head->buffers, 1);
    for (size_t c = 0; c < columns; c++) {
        export_column(&fillings[c], rows, slab, &head->children[c]);
        head->pointers[c] = &head->children[c].array;
    }
    to->children = head->pointers;
    to->n_children = (int64_t)columns;
}

Status table_export(const Table *table, TableName name, Pool *pool, struct ArrowArray *to)
{
    const Layout *layout = &LAYOUTS[name];
    Filling fillings[MAX_COLUMNS];
    size_t columns = layout->column_count, size = slab_round(sizeof(Head));
    uint32_t *order;
    for (size_t c = 0; c < columns; c++) {
        Filling *filling = &fillings[c];
        if (!measure_column(table, layout->row_bytes, &layout->columns[c], filling))
            return NOT_MINE;
        size += filling->maps_bytes + filling->offsets_bytes + filling->values_bytes;
    }
    Status status = table_sort(table, name, &order);
    Slab *slab = status == DONE ? slab_take(pool, size) : NULL;
    if (slab) {
        uint8_t *at = slab->data + slab_round(sizeof(Head));
        for (size_t c = 0; c < columns; c++)
            at = lay_out(at, &fillings[c]);
        fill_table(table, name, order, fillings);
        export_table(fillings, columns, table->count, slab, to);
        slab_drop(slab);
    }
    free(order);
    return slab ? DONE : NO_MEMORY;
}
