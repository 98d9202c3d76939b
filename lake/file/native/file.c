/* Writes pages, their metadata, and the footer. Fields and their numbers are those of
   https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift */
#include "file.h"

#include "crc32.h"

enum { PLAIN = 0, RLE = 3, DATA_PAGE = 0, UNCOMPRESSED = 0, MAX_DEFINED = 3 };

static const char MAGIC[] = {'P', 'A', 'R', '1'};

/* The least and greatest value of a column, and its number of NULLs. */
typedef struct {
    bool is_bounded, has_values;
    int64_t least, greatest;
    size_t width, nulls;
} Bounds;

/* State of the file being written. */
typedef struct {
    const Plan *plan;
    Output *file;
    Output page, chunks; /* the current page; the columns so far, as in the footer */
    uint32_t order[MAX_LEVELS];
    Page found;
    CrcTables tables;
} Writing;

static void find_bounds(const Column *column, const Page *page, Bounds *bounds)
{
    const Values *values = &column->values;
    *bounds = (Bounds){.is_bounded = true, .width = values->width};
    bounds->nulls = page->levels - page->count;
    for (size_t i = 0; i < page->count; i++) {
        size_t size;
        const uint8_t *from = value_at(values, page->places[i], &size);
        int64_t value = 0;
        int32_t narrow;
        if (size == sizeof narrow) {
            memcpy(&narrow, from, sizeof narrow);
            value = narrow;
        } else
            memcpy(&value, from, sizeof value);
        if (!i || value < bounds->least)
            bounds->least = value;
        if (!i || value > bounds->greatest)
            bounds->greatest = value;
        bounds->has_values = true;
    }
}

static void put_bound(Output *output, unsigned step, int64_t value, size_t width)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    put_field(output, step, IS_BINARY);
    put_binary(output, bytes, width);
}

/* Statistics: both bounds under their deprecated and their current names; empty if unbounded. */
static void put_statistics(Output *output, const Bounds *bounds)
{
    if (!bounds->is_bounded) {
        put_stop(output);
        return;
    }
    if (bounds->has_values) {
        put_bound(output, 1, bounds->greatest, bounds->width);
        put_bound(output, 1, bounds->least, bounds->width);
    }
    put_number_field(output, bounds->has_values ? 1 : 3, IS_I64, (int64_t)bounds->nulls);
    if (bounds->has_values) {
        put_bound(output, 2, bounds->greatest, bounds->width);
        put_bound(output, 1, bounds->least, bounds->width);
        put_field(output, 1, IS_TRUE); /* is_max_value_exact */
        put_field(output, 1, IS_TRUE);
    }
    put_stop(output);
}

/* PageHeader of the current page. */
static void put_page_header(Writing *to, const Bounds *bounds)
{
    Output *file = to->file;
    int64_t size = (int64_t)to->page.size;
    put_number_field(file, 1, IS_I32, DATA_PAGE);
    put_number_field(file, 1, IS_I32, size);
    put_number_field(file, 1, IS_I32, size);
    put_number_field(file, 1, IS_I32, (int32_t)crc32_of(&to->tables, to->page.data, to->page.size));
    put_field(file, 1, IS_STRUCT); /* DataPageHeader */
    put_number_field(file, 1, IS_I32, (int64_t)to->found.levels);
    put_number_field(file, 1, IS_I32, PLAIN);
    put_number_field(file, 1, IS_I32, RLE); /* encoding of both kinds of levels */
    put_number_field(file, 1, IS_I32, RLE);
    put_field(file, 1, IS_STRUCT);
    put_statistics(file, bounds);
    put_stop(file);
    put_stop(file);
}

/* The number of occurrences of each level. */
static void put_histogram(Output *output, unsigned step, const uint8_t *levels, size_t count,
                          unsigned most)
{
    int64_t counts[MAX_DEFINED + 1] = {0};
    for (size_t i = 0; i < count; i++)
        counts[levels[i]]++;
    put_field(output, step, IS_LIST);
    put_list(output, most ? most + 1 : 0, IS_I64);
    for (unsigned level = 0; most && level <= most; level++)
        put_number(output, counts[level]);
}

/* SizeStatistics, unless they say no more than the number of values. */
static void put_sizes(Output *output, unsigned step, const Column *column, const Page *page,
                      uint64_t varying)
{
    bool varies = column->values.form == VARYING;
    if (!varies && !max_defined(column))
        return;
    put_field(output, step, IS_STRUCT);
    if (varies)
        put_number_field(output, 1, IS_I64, (int64_t)varying);
    put_histogram(output, varies ? 1 : 2, page->repeated, page->levels, max_repeated(column));
    put_histogram(output, 1, page->defined, page->levels, max_defined(column));
    put_stop(output);
}

static void put_path(Output *output, const Column *column)
{
    put_list(output, column->lists ? 3 : 1, IS_BINARY);
    put_binary(output, column->name, strlen(column->name));
    if (column->lists) {
        put_binary(output, "list", 4);
        put_binary(output, "element", 7);
    }
}

/* ColumnChunk; its only page begins at `start` of the file and ends at the current end. */
static void put_chunk(Writing *to, const Column *column, const Bounds *bounds, size_t start,
                      uint64_t varying)
{
    Output *chunks = &to->chunks;
    int64_t size = (int64_t)(to->file->size - start);
    put_number_field(chunks, 2, IS_I64, 0); /* file_offset, which is deprecated */
    put_field(chunks, 1, IS_STRUCT);        /* ColumnMetaData */
    put_number_field(chunks, 1, IS_I32, column->values.physical);
    put_field(chunks, 1, IS_LIST);
    put_list(chunks, 2, IS_I32);
    put_number(chunks, RLE);
    put_number(chunks, PLAIN);
    put_field(chunks, 1, IS_LIST);
    put_path(chunks, column);
    put_number_field(chunks, 1, IS_I32, UNCOMPRESSED);
    put_number_field(chunks, 1, IS_I64, (int64_t)to->found.levels);
    put_number_field(chunks, 1, IS_I64, size);
    put_number_field(chunks, 1, IS_I64, size);
    put_number_field(chunks, 2, IS_I64, (int64_t)start);
    if (bounds->is_bounded) {
        put_field(chunks, 3, IS_STRUCT);
        put_statistics(chunks, bounds);
    }
    put_field(chunks, bounds->is_bounded ? 1 : 4, IS_LIST); /* a list of PageEncodingStats */
    put_list(chunks, 1, IS_STRUCT);
    put_number_field(chunks, 1, IS_I32, DATA_PAGE);
    put_number_field(chunks, 1, IS_I32, PLAIN);
    put_number_field(chunks, 1, IS_I32, 1);
    put_stop(chunks);
    put_sizes(chunks, 3, column, &to->found, varying);
    put_stop(chunks);
    put_stop(chunks);
}

static Status put_column(Writing *to, const Column *column, int64_t rows, bool is_bounded)
{
    size_t start = to->file->size;
    Page *found = &to->found;
    Bounds bounds = {0};
    if (column_read(column, to->order, rows, found) != DONE)
        return DECLINED;
    if (is_bounded) {
        if (column->lists || column->values.form != FIXED || column->values.width > 8)
            return DECLINED;
        find_bounds(column, found, &bounds);
    }
    to->page.size = 0;
    put_levels(&to->page, found->repeated, found->levels, max_repeated(column));
    put_levels(&to->page, found->defined, found->levels, max_defined(column));
    uint64_t varying = put_values(&to->page, &column->values, found);
    if (to->page.failed)
        return NO_MEMORY;
    if (to->page.size > INT32_MAX)
        return DECLINED;
    put_page_header(to, &bounds);
    put_bytes(to->file, to->page.data, to->page.size);
    put_chunk(to, column, &bounds, start, varying);
    return DONE;
}

/* FileMetaData, its size, and the magic bytes. */
static void put_footer(Writing *to, int64_t rows)
{
    const Plan *plan = to->plan;
    Output *file = to->file;
    size_t start = file->size;
    int64_t size = (int64_t)(start - sizeof MAGIC);
    put_bytes(file, plan->head, plan->head_size);
    put_number_field(file, 1, IS_I64, rows);
    put_field(file, 1, IS_LIST);
    put_list(file, 1, IS_STRUCT); /* RowGroup */
    put_field(file, 1, IS_LIST);
    put_list(file, plan->columns, IS_STRUCT);
    put_bytes(file, to->chunks.data, to->chunks.size);
    put_number_field(file, 1, IS_I64, size);
    put_number_field(file, 1, IS_I64, rows);
    put_field(file, 1, IS_LIST);
    put_list(file, plan->sorted_count, IS_STRUCT);
    for (size_t i = 0; i < plan->sorted_count; i++) {
        put_number_field(file, 1, IS_I32, plan->sorted[i]);
        put_field(file, 1, IS_FALSE); /* descending */
        put_field(file, 1, IS_FALSE); /* nulls_first */
        put_stop(file);
    }
    put_number_field(file, 1, IS_I64, sizeof MAGIC); /* offset of the first page */
    put_number_field(file, 1, IS_I64, size);
    put_stop(file);
    put_bytes(file, plan->tail, plan->tail_size);
    put_u32(file, (uint32_t)(file->size - start));
    put_bytes(file, MAGIC, sizeof MAGIC);
}

Status write_file(const struct ArrowSchema *schema, const struct ArrowArray *rows,
                  const Plan *plan, Output *file)
{
    Writing *to = calloc(1, sizeof *to);
    if (!to)
        return NO_MEMORY;
    to->plan = plan;
    to->file = file;
    crc32_prepare(&to->tables);
    put_bytes(file, MAGIC, sizeof MAGIC);
    Status status = find_order(schema, rows, plan, to->order);
    for (size_t i = 0; i < plan->columns && status == DONE; i++) {
        Column column;
        status = column_open(schema->children[i], rows->children[i], rows->length, &column);
        if (status == DONE)
            status = put_column(to, &column, rows->length, plan->bounded[i]);
    }
    if (status == DONE)
        put_footer(to, rows->length);
    if (status == DONE && (file->failed || to->chunks.failed))
        status = NO_MEMORY;
    output_free(&to->page);
    output_free(&to->chunks);
    free(to);
    return status;
}
