/* Opens columns of Arrow's C stream interface. */
#include "table.h"

#include <stdlib.h>

/* Parse an Arrow format string; false: the type does not occur in segments. */
static bool read_format(const char *format, Column *column)
{
    static const struct {
        const char *format;
        Column column;
    } known[] = {
        {"b", {BITS, 0}},     {"c", {INTEGER, 1}}, {"i", {INTEGER, 4}}, {"l", {INTEGER, 8}},
        {"z", {VARYING, 0}},  {"u", {TEXT, 0}},    {"w:32", {HASH, 0}}, {"d:38,0", {AMOUNT, 0}},
    };
    for (size_t at = 0; at < sizeof known / sizeof *known; at++)
        if (strcmp(format, known[at].format) == 0) {
            *column = known[at].column;
            return true;
        }
    return false;
}

static bool fail(const char *name, const char *what)
{
    PyErr_Format(PyExc_ValueError, "column %s of an index segment's rows %s", name, what);
    return false;
}

/* Find a column by name, and its type. */
static bool find_column(const struct ArrowSchema *schema, const char *name, Column *column,
                        int64_t *at)
{
    for (*at = 0; *at < schema->n_children; ++*at) {
        const struct ArrowSchema *child = schema->children[*at];
        if (child->name && strcmp(child->name, name) == 0)
            return (!child->dictionary && read_format(child->format, column)) ||
                   fail(name, "has another type");
    }
    return fail(name, "is missing");
}

static bool open_cells(const struct ArrowArray *array, const Column *column, int64_t rows,
                       Cells *cells)
{
    bool varies = column->form == VARYING || column->form == TEXT;
    if (array->length != rows || array->offset < 0 || array->n_buffers != (varies ? 3 : 2))
        return false;
    const uint8_t *first = array->buffers[1], *last = varies ? array->buffers[2] : NULL;
    if (rows && !first)
        return false;
    *cells = (Cells){
        .valid = array->null_count ? array->buffers[0] : NULL,
        .data = varies ? last : first,
        .ends = varies ? (const int32_t *)first : NULL,
        .offset = array->offset,
    };
    if (!varies || !rows)
        return true;
    static const uint8_t nothing;
    if (!cells->data)
        cells->data = &nothing;
    int32_t before = 0;
    for (int64_t at = cells->offset; at <= cells->offset + rows; before = cells->ends[at++])
        if (cells->ends[at] < before || (!last && cells->ends[at]))
            return false;
    return true;
}

/* Take over a batch, and open its columns. */
static bool add_batch(Table *table, struct ArrowArray *array, const int64_t *at)
{
    Batch *batches = realloc(table->batches, (table->batch_count + 1) * sizeof *batches);
    Cells *cells = batches ? calloc((size_t)table->count + 1, sizeof *cells) : NULL;
    if (batches)
        table->batches = batches;
    if (!cells) {
        array->release(array);
        PyErr_NoMemory();
        return false;
    }
    table->batches[table->batch_count++] = (Batch){*array, cells};
    table->rows += (size_t)array->length;
    if (array->offset || array->length < 0 || table->rows > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "rows of an index segment are not a batch");
        return false;
    }
    for (int column = 0; column < table->count; column++)
        if (at[column] >= array->n_children ||
            !open_cells(array->children[at[column]], &table->columns[column], array->length,
                        &cells[column])) {
            PyErr_SetString(PyExc_ValueError, "a column of an index segment's rows is damaged");
            return false;
        }
    return true;
}

/* Parse the columns of a stream; `at` receives their places in it. */
static bool open_columns(Table *table, const struct ArrowSchema *schema, PyObject *names,
                         int64_t *at)
{
    for (int column = 0; column < table->count; column++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, column), NULL);
        if (!name || !find_column(schema, name, &table->columns[column], &at[column]))
            return false;
    }
    return true;
}

static bool read_batches(Table *table, struct ArrowArrayStream *stream, const int64_t *at)
{
    for (;;) {
        struct ArrowArray array = {.length = 0};
        if (stream->get_next(stream, &array) != 0) {
            const char *error = stream->get_last_error(stream);
            PyErr_SetString(PyExc_ValueError, error ? error : "rows cannot be read");
            return false;
        }
        if (!array.release)
            return true;
        if (!add_batch(table, &array, at))
            return false;
    }
}

static bool read_stream(Table *table, struct ArrowArrayStream *stream, PyObject *names)
{
    struct ArrowSchema schema = {.format = NULL};
    if (stream->get_schema(stream, &schema) != 0) {
        PyErr_SetString(PyExc_ValueError, "rows have no schema");
        return false;
    }
    int64_t *at = calloc((size_t)table->count + 1, sizeof *at);
    table->columns = calloc((size_t)table->count + 1, sizeof *table->columns);
    bool read = false;
    if (!at || !table->columns)
        PyErr_NoMemory();
    else
        read = open_columns(table, &schema, names, at) && read_batches(table, stream, at);
    free(at);
    schema.release(&schema);
    return read;
}

bool table_open(Table *table, PyObject *source, PyObject *names)
{
    *table = (Table){.count = (int)PyTuple_Size(names)};
    PyObject *capsule = PyObject_CallMethod(source, "__arrow_c_stream__", NULL);
    struct ArrowArrayStream *stream =
        capsule ? PyCapsule_GetPointer(capsule, "arrow_array_stream") : NULL;
    bool is_open = stream && stream->release && read_stream(table, stream, names);
    if (stream && !stream->release)
        PyErr_SetString(PyExc_ValueError, "rows were read before");
    Py_XDECREF(capsule);
    if (!is_open)
        table_close(table);
    return is_open;
}

Place *table_places(const Table *table)
{
    Place *places = malloc((table->rows + 1) * sizeof *places), *to = places;
    for (uint32_t batch = 0; places && batch < table->batch_count; batch++)
        for (uint32_t row = 0; row < (uint32_t)table->batches[batch].array.length; row++)
            *to++ = (Place){batch, row};
    return places;
}

void table_close(Table *table)
{
    for (size_t at = 0; at < table->batch_count; at++) {
        struct ArrowArray *array = &table->batches[at].array;
        if (array->release)
            array->release(array);
        free(table->batches[at].cells);
    }
    free(table->batches);
    free(table->columns);
    *table = (Table){.count = 0};
}

static bool has_null(const Table *table, int column)
{
    bool found = false;
    for (size_t at = 0; !found && at < table->batch_count; at++) {
        const Batch *batch = &table->batches[at];
        for (int64_t row = 0; !found && row < batch->array.length; row++)
            found = is_null(&batch->cells[column], (uint32_t)row);
    }
    return found;
}

bool table_check(const Table *table, const Asked *asked, int count)
{
    for (int column = 0; column < count; column++) {
        if (table->columns[column].form != asked[column].form)
            return fail(asked[column].name, "has another type");
        if (!asked[column].may_be_null && has_null(table, column))
            return fail(asked[column].name, "lacks a value");
    }
    return true;
}
