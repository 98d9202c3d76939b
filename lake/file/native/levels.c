/* Encodes levels as runs of one level and bit-packed groups of eight:
   https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE
   Writers may choose where one ends and the other begins; this follows pyarrow. */
#include "column.h"

enum { GROUP = 8, MAX_GROUPS = 63 };

typedef struct {
    Output *output;
    unsigned bits;          /* of a level */
    uint8_t held[GROUP];    /* levels not written yet */
    size_t held_count;
    size_t repeats;         /* length of the current sequence of equal levels */
    uint8_t last;
    size_t literals;        /* levels in the open bit-packed run */
    size_t indicator;       /* offset of that run's header in the output */
    bool is_open;
} Runs;

static void end_packed(Runs *runs)
{
    size_t groups = (runs->literals + GROUP - 1) / GROUP;
    if (!runs->output->failed)
        runs->output->data[runs->indicator] = (uint8_t)(groups << 1 | 1);
    runs->is_open = false;
    runs->literals = 0;
}

/* Write the held levels to the bit-packed run, opening one if necessary. */
static void pack(Runs *runs)
{
    if (!runs->is_open) {
        runs->indicator = runs->output->size;
        put_byte(runs->output, 0);
        runs->is_open = true;
    }
    unsigned word = 0;
    for (size_t i = 0; i < runs->held_count; i++)
        word |= (unsigned)runs->held[i] << i * runs->bits;
    for (unsigned i = 0; i < runs->bits && runs->held_count; i++)
        put_byte(runs->output, word >> 8 * i & 0xff);
    runs->held_count = 0;
}

/* Handle a full group of eight levels. */
static void end_group(Runs *runs)
{
    if (runs->repeats >= GROUP) {
        runs->held_count = 0; /* they belong to a run of one level, which continues */
        if (runs->literals)
            end_packed(runs);
        return;
    }
    runs->literals += runs->held_count;
    pack(runs);
    if (runs->literals / GROUP >= MAX_GROUPS)
        end_packed(runs);
    runs->repeats = 0;
}

static void put_repeats(Runs *runs)
{
    put_varint(runs->output, runs->repeats << 1);
    put_byte(runs->output, runs->last);
    runs->held_count = runs->repeats = 0;
}

static void add_level(Runs *runs, uint8_t level)
{
    if (runs->repeats && level == runs->last) {
        if (++runs->repeats > GROUP)
            return;
    } else {
        if (runs->repeats >= GROUP)
            put_repeats(runs);
        runs->repeats = 1;
        runs->last = level;
    }
    runs->held[runs->held_count++] = level;
    if (runs->held_count == GROUP)
        end_group(runs);
}

static void end_runs(Runs *runs)
{
    bool is_one = !runs->literals && (runs->repeats == runs->held_count || !runs->held_count);
    if (runs->repeats && is_one) {
        put_repeats(runs);
        return;
    }
    if (!runs->literals && !runs->repeats && !runs->held_count)
        return;
    while (runs->held_count && runs->held_count < GROUP)
        runs->held[runs->held_count++] = 0;
    runs->literals += runs->held_count;
    pack(runs);
    end_packed(runs);
}

void put_levels(Output *output, const uint8_t *levels, size_t count, unsigned most)
{
    if (!most)
        return;
    size_t start = output->size;
    put_u32(output, 0);
    Runs runs = {.output = output, .bits = most > 1 ? 2 : 1};
    for (size_t i = 0; i < count; i++)
        add_level(&runs, levels[i]);
    end_runs(&runs);
    if (output->failed)
        return;
    size_t size = output->size - start - 4;
    for (unsigned i = 0; i < 4; i++)
        output->data[start + i] = (uint8_t)(size >> 8 * i);
}
