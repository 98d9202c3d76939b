/* Rows on their way into Arrow: one array of structs per table, turned into columns at the end. */
#ifndef TONLAKE_TABLE_H
#define TONLAKE_TABLE_H

#include "columns.h"
#include "slice.h"

/* Texts of closed sets; a row keeps a number in place of each. */
#define ALL_WORDS(X) \
    X(uninit) X(frozen) X(active) X(nonexist) X(in) X(out) X(ext_in) X(ext_out) X(std) X(none) \
    X(var) X(unchanged) X(deleted) X(no_state) X(bad_state) X(no_gas) X(suspended) X(negfunds) \
    X(nofunds) X(ok) X(ord) X(storage) X(tick_tock) X(split_prepare) X(split_install) \
    X(merge_prepare) X(merge_install)

#define WORD_NAME(word) WORD_##word,
/* `int` and `extern` are words of C, too, and so stand apart. */
typedef enum { ALL_WORDS(WORD_NAME) WORD_int, WORD_extern, WORD_COUNT } Word;

/* Bytes in the heap of the row's table; of hashes, `size` still counts bytes. */
typedef struct {
    size_t at;
    uint32_t size;
} Span;

#define ALL_KINDS(X) \
    X(bool, bool) X(int8, int8_t) X(int32, int32_t) X(int64, int64_t) X(time, int64_t) \
    X(hash, Hash) X(amount, Amount) X(text, uint8_t) X(json, Span) X(bytes, Span) \
    X(hashes, Span)

#define KIND_TYPE(kind, type) typedef type Field_##kind;
#define KIND_NAME(kind, type) KIND_##kind,
ALL_KINDS(KIND_TYPE)
typedef enum { ALL_KINDS(KIND_NAME) KIND_COUNT } Kind;

/* A row is a struct with a value and a presence per column; absent is NULL. */
#define ROW_VALUE(name, kind) Field_##kind name;
#define ROW_PRESENCE(name, kind) bool has_##name;
#define ROW_TYPE(name, COLUMNS) \
    typedef struct { \
        COLUMNS##_COLUMNS(ROW_VALUE) COLUMNS##_COLUMNS(ROW_PRESENCE) \
    } Row_##name;
ALL_TABLES(ROW_TYPE)

#define TABLE_NAME(name, COLUMNS) TABLE_##name,
typedef enum { ALL_TABLES(TABLE_NAME) TABLE_COUNT } TableName;

/* Give a column of a row its value. */
#define SET(row, name, ...) ((void)((row)->name = (__VA_ARGS__), (row)->has_##name = true))

typedef struct {
    const char *name;
    Kind kind;
    size_t value, presence; /* offsets in the row */
} Column;

typedef struct {
    const char *name;
    const Column *columns;
    size_t column_count, row_bytes, key_bytes;
    void (*write_key)(const void *row, uint8_t *key);
} Layout;

/* No table has more. */
#define MAX_COLUMNS 80

extern const Layout LAYOUTS[TABLE_COUNT];
/* Padded with zeroes, so that as many bytes can be copied of each. */
#define MAX_WORD_BYTES 16
extern const char WORDS[WORD_COUNT][MAX_WORD_BYTES];
extern const uint8_t WORD_SIZES[WORD_COUNT];
extern const char *const KINDS[KIND_COUNT];

typedef struct {
    uint8_t *rows;
    size_t count, capacity;
    Heap heap; /* what spans of the rows point into */
} Table;

/* Append an empty row; NULL when there is no memory. It moves when the next one is appended. */
void *table_append(Table *table, TableName name);

#define APPEND(tables, name) ((Row_##name *)table_append(&(tables)[TABLE_##name], TABLE_##name))
#define ROW(tables, name, index) (&((Row_##name *)(tables)[TABLE_##name].rows)[index])

/* Return the order in which the rows are sorted as the schema says, equal ones as they came. */
Status table_sort(const Table *table, TableName name, uint32_t **order);

/* Make the table empty; its memory stays for the next call. */
void table_reset(Table *table);
void table_free(Table *table);

#endif
