/* A cursor in a cell, and functions shared by the files of the interpreter. */
#ifndef TONLAKE_BODY_SLICE_H
#define TONLAKE_BODY_SLICE_H

#include "decode.h"

#define MAX_LEVELS 48

typedef struct {
    const Cell *cell;
    unsigned pos, ref;
} Slice;

static inline Bits here(const Slice *slice)
{
    return (Bits){slice->cell->data, slice->pos};
}

static inline unsigned bits_left(const Slice *slice)
{
    return slice->cell->bits - slice->pos;
}

static inline unsigned refs_left(const Slice *slice)
{
    return slice->cell->ref_count - slice->ref;
}

static inline bool is_used_up(const Slice *slice)
{
    return !bits_left(slice) && !refs_left(slice);
}

static inline bool load(Slice *slice, unsigned bits, uint64_t *value)
{
    if (bits_left(slice) < bits)
        return false;
    *value = read_bits(here(slice), bits);
    slice->pos += bits;
    return true;
}

static inline bool load_child(Work *work, Slice *slice, Slice *child)
{
    if (!refs_left(slice))
        return false;
    *child = (Slice){&work->bag.cells[slice->cell->refs[slice->ref++]], 0, 0};
    return true;
}

#define TRY(step)                                                                                  \
    do {                                                                                           \
        Result try_result = (step);                                                                \
        if (try_result != READ)                                                                    \
            return try_result;                                                                     \
    } while (0)
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return FAILED;                                                                         \
    } while (0)

static inline Result visit(Work *work)
{
    return --work->visits < 0 ? DECLINED : READ;
}

static inline Result enter(Work *work)
{
    return ++work->level > MAX_LEVELS ? DECLINED : visit(work);
}

Result decode_node(Work *work, int32_t node, Slice *slice, unsigned payloads);
Result decode_opcode(Work *work, Slice slice, unsigned payloads);

Result decode_address(Work *work, Slice *slice);
Result decode_var_uint(Work *work, const int32_t *code, Slice *slice);
Result decode_snake(Work *work, Slice *slice, bool is_text);
Result decode_short_text(Work *work, Slice *slice);
Result decode_chunked_text(Work *work, Slice *slice);
Result decode_rest(Work *work, Slice *slice, unsigned payloads);
Result decode_linked_raw(Work *work, Slice *slice, unsigned payloads);

#endif
