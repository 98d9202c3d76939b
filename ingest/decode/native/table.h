/* Collects decoded rows as structs, one array per table, and turns them into columns at the end. */
#ifndef TONLAKE_TABLE_H
#define TONLAKE_TABLE_H

#include "columns.h"
#include "slice.h"

/* Enumerated texts; a row stores the number of one. */
#define ALL_WORDS(X) \
    X(uninit) X(frozen) X(active) X(nonexist) X(in) X(out) X(ext_in) X(ext_out) X(std) X(none) \
    X(var) X(unchanged) X(deleted) X(no_state) X(bad_state) X(no_gas) X(suspended) X(negfunds) \
    X(nofunds) X(ok) X(ord) X(storage) X(tick_tock) X(split_prepare) X(split_install) \
    X(merge_prepare) X(merge_install)

#define WORD_NAME(word) WORD_##word,
/* `int` and `extern` are C keywords, hence listed separately. */
typedef enum { ALL_WORDS(WORD_NAME) WORD_int, WORD_extern, WORD_COUNT } Word;

/* Bytes in the heap of the row's table; for a list of hashes, `size` still counts bytes. */
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

/* A row is a struct with a value and a presence flag per column; absent means NULL. */
#define ROW_VALUE(name, kind) Field_##kind name;
#define ROW_PRESENCE(name, kind) bool has_##name;
#define ROW_TYPE(name, COLUMNS) \
    typedef struct { \
        COLUMNS##_COLUMNS(ROW_VALUE) COLUMNS##_COLUMNS(ROW_PRESENCE) \
    } Row_##name;
ALL_TABLES(ROW_TYPE)

#define TABLE_NAME(name, COLUMNS) TABLE_##name,
typedef enum { ALL_TABLES(TABLE_NAME) TABLE_COUNT } TableName;

/* Set the value of a column of a row. */
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

/* Upper limit for any table. */
#define MAX_COLUMNS 80

extern const Layout LAYOUTS[TABLE_COUNT];
/* Padded with zeroes, so that a fixed number of bytes can be copied. */
#define MAX_WORD_BYTES 16
extern const char WORDS[WORD_COUNT][MAX_WORD_BYTES];
extern const uint8_t WORD_SIZES[WORD_COUNT];
extern const char *const KINDS[KIND_COUNT];

typedef struct {
    uint8_t *rows;
    size_t count, capacity;
    Heap heap; /* the bytes that spans of the rows refer to */
} Table;

/* Append an empty row; NULL if there is no memory. It moves when the next one is appended. */
void *table_append(Table *table, TableName name);

#define APPEND(tables, name) ((Row_##name *)table_append(&(tables)[TABLE_##name], TABLE_##name))
#define ROW(tables, name, index) (&((Row_##name *)(tables)[TABLE_##name].rows)[index])

/* Compute the order of rows as in the schema; equal rows keep their order. */
Status table_sort(const Table *table, TableName name, uint32_t **order);

/* Clear the table; its memory is kept for the next call. */
void table_reset(Table *table);
void table_free(Table *table);

#endif
