/* The interpreter of compiled layouts; its results equal those of body.py and its codecs. */
#include "slice.h"

#include <string.h>

#define OPCODE_BITS 32
#define MAX_PAYLOADS 10
#define CELL_TRIALS 4
#define SPARE_CELLS 1024
#define RAW_SHOWS 2
#define SPARE_BYTES 4096
#define SPARE_CELL_BYTES 64
#define SPARE_SHOWS 4096
#define SHOWN_BYTES 16 /* factor of the limit of shown bytes */
#define MAX_PARTS 64
#define PART_WORDS 5
#define CHOICE_WORDS 3

/* Write a text of the program, preceded by a comma unless it follows the opening brace. */
static void put_key(Work *work, int32_t text)
{
    Out *out = &work->out;
    if (out->size && out->text[out->size - 1] != '{')
        PUT(out, ",");
    put(out, work->program->texts[text], work->program->sizes[text]);
}

/* Return whether a part is present: its switch is a number read earlier. */
static bool is_present(const int32_t *part, const uint64_t *numbers)
{
    if (part[2] < 0)
        return true;
    uint64_t number = numbers[part[2]];
    return part[3] < 0 ? number != 0 : number >> part[3] & 1;
}

/* Decode a list; `count` receives the number of its items. */
static Result decode_chunks(Work *work, int32_t node, Slice *slice, unsigned payloads,
                            uint64_t *count)
{
    uint64_t has_next;
    Slice chunk, next;
    NEED(load(slice, 1, &has_next));
    if (has_next)
        NEED(load_child(work, slice, &chunk));
    *count = 0;
    PUT(&work->out, "[");
    while (has_next) {
        TRY(visit(work));
        NEED(load(&chunk, 1, &has_next));
        if (has_next)
            NEED(load_child(work, &chunk, &next));
        while (!is_used_up(&chunk)) {
            if ((*count)++)
                PUT(&work->out, ",");
            TRY(enter(work));
            TRY(decode_node(work, node, &chunk, payloads));
            work->level--;
        }
        if (has_next)
            chunk = next;
    }
    PUT(&work->out, "]");
    return READ;
}

/* Decode one part of a record after its key; keep its number in case other parts depend on it. */
static Result decode_part(Work *work, const int32_t *part, uint64_t *number, Slice *slice,
                          const uint64_t *numbers, unsigned payloads)
{
    const int32_t *node = work->program->code + work->program->starts[part[1]];
    if (node[0] == OP_CHUNKS) {
        uint64_t count;
        TRY(decode_chunks(work, node[1], slice, payloads, &count));
        return part[4] < 0 || numbers[part[4]] == count ? READ : FAILED;
    }
    bool is_number = (node[0] == OP_UINT && node[1] <= 64) || node[0] == OP_BOOL;
    unsigned bits = node[0] == OP_BOOL ? 1 : (unsigned)node[1];
    if (is_number && bits <= bits_left(slice))
        *number = read_bits(here(slice), bits);
    return decode_node(work, part[1], slice, payloads);
}

static Result decode_record(Work *work, const int32_t *code, Slice *slice, unsigned payloads)
{
    uint64_t numbers[MAX_PARTS];
    PUT(&work->out, "{");
    if (code[1] >= 0)
        put_key(work, code[1]);
    for (int32_t i = 0; i < code[2]; i++) {
        const int32_t *part = code + 3 + PART_WORDS * i;
        if (!is_present(part, numbers))
            continue;
        put_key(work, part[0]);
        TRY(decode_part(work, part, numbers + i, slice, numbers, payloads));
    }
    PUT(&work->out, "}");
    return READ;
}

static bool has_tag(const int32_t *choice, const Slice *slice)
{
    unsigned bits = (unsigned)choice[1];
    return bits <= bits_left(slice) && read_bits(here(slice), bits) == (uint32_t)choice[0];
}

/* A position of the interpreter, restored if a layout does not fit. */
typedef struct {
    size_t size;
    unsigned level;
    long raw_bytes;
} Mark;

static Mark set_mark(const Work *work)
{
    return (Mark){work->out.size, work->level, work->raw_bytes};
}

static void go_back(Work *work, Mark mark)
{
    work->out.size = mark.size;
    work->level = mark.level;
    work->raw_bytes = mark.raw_bytes;
}

/* Decode the first constructor that consumes the cell, else the first that can be read. */
static Result decode_union(Work *work, const int32_t *code, Slice *slice, unsigned payloads)
{
    int32_t found = -1, fitting = 0;
    Mark mark = set_mark(work);
    for (int32_t i = 0; i < code[1]; i++)
        fitting += has_tag(code + 2 + CHOICE_WORDS * i, slice);
    for (int32_t i = 0; i < code[1]; i++) {
        const int32_t *choice = code + 2 + CHOICE_WORDS * i;
        if (!has_tag(choice, slice))
            continue;
        Slice attempt = *slice;
        attempt.pos += (unsigned)choice[1];
        go_back(work, mark);
        Result result = decode_node(work, choice[2], &attempt, payloads);
        if (result == DECLINED)
            return result;
        if (result == READ && (fitting == 1 || is_used_up(&attempt))) {
            *slice = attempt;
            return READ;
        }
        if (result == READ && found < 0)
            found = i;
    }
    go_back(work, mark);
    NEED(found >= 0);
    const int32_t *choice = code + 2 + CHOICE_WORDS * found;
    slice->pos += (unsigned)choice[1];
    return decode_node(work, choice[2], slice, payloads);
}

static Result decode_reference(Work *work, int32_t node, Slice *slice, unsigned payloads)
{
    Slice child;
    NEED(load_child(work, slice, &child));
    TRY(enter(work));
    TRY(decode_node(work, node, &child, payloads));
    work->level--;
    return is_used_up(&child) ? READ : FAILED;
}

/* Read HmLabel: hml_short$0, hml_long$10 or hml_same$11. */
static Result decode_label(Work *work, Slice *slice, unsigned key_bits, unsigned *length)
{
    Out *out = &work->out;
    uint64_t bit, value = 0, same = 0;
    unsigned width = 0;
    while (key_bits >> width)
        width++;
    NEED(load(slice, 1, &bit));
    if (!bit) {
        NEED(load(slice, 1, &bit));
        for (; bit; value++)
            NEED(load(slice, 1, &bit));
        PUT(out, "{\"@type\":\"hashmap_label_short\",\"len\":");
    } else {
        NEED(load(slice, 1, &bit));
        if (bit)
            NEED(load(slice, 1, &same));
        NEED(load(slice, width, &value));
        if (bit) {
            PUT(out, "{\"@type\":\"hashmap_label_same\",\"v\":");
            put_small(out, same);
            PUT(out, ",\"n\":");
        } else {
            PUT(out, "{\"@type\":\"hashmap_label_long\",\"n\":");
        }
    }
    bool is_same = bit;
    NEED(value <= key_bits);
    *length = (unsigned)value;
    put_small(out, value);
    if (!is_same) {
        NEED(bits_left(slice) >= value);
        PUT(out, ",\"s\":");
        put_bits(out, here(slice), *length);
        slice->pos += *length;
    }
    PUT(out, "}");
    return READ;
}

static Result decode_edge(Work *work, unsigned key_bits, int32_t node, Slice *slice,
                          unsigned payloads)
{
    unsigned length;
    Out *out = &work->out;
    PUT(out, "{\"@type\":\"hashmap_edge\",\"label\":");
    TRY(decode_label(work, slice, key_bits, &length));
    if (length == key_bits) {
        PUT(out, ",\"node\":{\"@type\":\"hashmap_node_leaf\",\"value\":");
        TRY(decode_node(work, node, slice, payloads));
        PUT(out, "}}");
        return READ;
    }
    PUT(out, ",\"node\":{\"@type\":\"hashmap_node_fork\",\"left\":");
    for (int side = 0; side < 2; side++) {
        Slice child;
        if (side)
            PUT(out, ",\"right\":");
        NEED(load_child(work, slice, &child));
        TRY(enter(work));
        TRY(decode_edge(work, key_bits - length - 1, node, &child, payloads));
        work->level--;
        NEED(is_used_up(&child));
    }
    PUT(out, "}}");
    return READ;
}

static Result decode_dictionary(Work *work, const int32_t *code, Slice *slice, unsigned payloads)
{
    uint64_t is_there;
    Slice child;
    NEED(load(slice, 1, &is_there));
    if (!is_there) {
        PUT(&work->out, "{\"@type\":\"hashmap_empty\"}");
        return READ;
    }
    PUT(&work->out, "{\"@type\":\"hashmap_root\",\"root\":");
    NEED(load_child(work, slice, &child));
    TRY(enter(work));
    TRY(decode_edge(work, (unsigned)code[1], code[2], &child, payloads));
    work->level--;
    PUT(&work->out, "}");
    return is_used_up(&child) ? READ : FAILED;
}

static Result decode_maybe(Work *work, int32_t node, Slice *slice, unsigned payloads)
{
    uint64_t is_there;
    NEED(load(slice, 1, &is_there));
    if (!is_there) {
        PUT(&work->out, "{\"@type\":\"nothing_from_maybe\"}");
        return READ;
    }
    PUT(&work->out, "{\"@type\":\"something_from_maybe\",\"value\":");
    TRY(decode_node(work, node, slice, payloads));
    PUT(&work->out, "}");
    return READ;
}

static Result decode_either(Work *work, const int32_t *code, Slice *slice, unsigned payloads)
{
    uint64_t is_second;
    NEED(load(slice, 1, &is_second));
    if (is_second)
        PUT(&work->out, "{\"@type\":\"second_from_either\",\"value\":");
    else
        PUT(&work->out, "{\"@type\":\"first_from_either\",\"value\":");
    TRY(decode_node(work, code[1 + is_second], slice, payloads));
    PUT(&work->out, "}");
    return READ;
}

static Result decode_bits(Work *work, const int32_t *code, Slice *slice)
{
    unsigned bits = code[0] == OP_BOOL ? 1 : (unsigned)code[1];
    NEED(bits_left(slice) >= bits);
    Bits from = here(slice);
    slice->pos += bits;
    if (code[0] == OP_BITS)
        put_bits(&work->out, from, bits);
    else if (code[0] != OP_BOOL)
        put_number(&work->out, from, bits, code[0] == OP_INT);
    else if (read_bits(from, 1))
        PUT(&work->out, "true");
    else
        PUT(&work->out, "false");
    return READ;
}

Result decode_node(Work *work, int32_t node, Slice *slice, unsigned payloads)
{
    const int32_t *code = work->program->code + work->program->starts[node];
    uint64_t count;
    switch (code[0]) {
    case OP_UINT: case OP_INT: case OP_BOOL: case OP_BITS: return decode_bits(work, code, slice);
    case OP_VAR_UINT: return decode_var_uint(work, code, slice);
    case OP_ADDRESS: return decode_address(work, slice);
    case OP_MAYBE: return decode_maybe(work, code[1], slice, payloads);
    case OP_EITHER: return decode_either(work, code, slice, payloads);
    case OP_REFERENCE: return decode_reference(work, code[1], slice, payloads);
    case OP_WRAPPED:
        PUT(&work->out, "{\"cell_reference\":");
        TRY(decode_node(work, code[1], slice, payloads));
        PUT(&work->out, "}");
        return READ;
    case OP_RECORD: return decode_record(work, code, slice, payloads);
    case OP_UNION: return decode_union(work, code, slice, payloads);
    case OP_HASHMAP: return decode_edge(work, (unsigned)code[1], code[2], slice, payloads);
    case OP_MAYBE_HASHMAP: return decode_dictionary(work, code, slice, payloads);
    case OP_REST: return decode_rest(work, slice, payloads);
    case OP_LINKED_RAW: return decode_linked_raw(work, slice, payloads);
    case OP_SNAKE_TEXT: return decode_snake(work, slice, true);
    case OP_SNAKE_BYTES: return decode_snake(work, slice, false);
    case OP_SHORT_TEXT: return decode_short_text(work, slice);
    case OP_CHUNKED_TEXT: return decode_chunked_text(work, slice);
    case OP_CHUNKS: return decode_chunks(work, code[1], slice, payloads, &count);
    case OP_UNREADABLE: return FAILED;
    default: return DECLINED;
    }
}

/* Return the triple of an opcode, or NULL. */
static const int32_t *find_opcode(const Program *program, uint32_t opcode)
{
    unsigned low = 0, high = program->opcode_count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        const int32_t *entry = program->opcodes + 3 * middle;
        if ((uint32_t)entry[0] == opcode)
            return entry;
        if ((uint32_t)entry[0] < opcode)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

Result decode_opcode(Work *work, Slice slice, unsigned payloads)
{
    uint64_t opcode;
    NEED(load(&slice, OPCODE_BITS, &opcode));
    const int32_t *entry = find_opcode(work->program, (uint32_t)opcode);
    NEED(entry);
    Mark mark = set_mark(work);
    for (int32_t i = 0; i < entry[2]; i++) {
        Slice attempt = slice;
        Result result =
            decode_node(work, work->program->layouts[entry[1] + i], &attempt, payloads);
        if (result != FAILED) {
            work->level = mark.level;
            return result;
        }
        go_back(work, mark);
    }
    return FAILED;
}

/* Read the bag and set its work limits; return false if the reference decoder has to decode it. */
static bool begin(Work *work, const uint8_t *data, size_t size, Slice *slice, int64_t *opcode)
{
    Bag *bag = &work->bag;
    if (!read_bag(bag, data, size))
        return false;
    work->visits = (long)CELL_TRIALS * bag->count + SPARE_CELLS;
    work->raw_bytes = (long)(RAW_SHOWS * bag->bytes) + SPARE_BYTES + SPARE_CELL_BYTES * bag->count;
    work->shows = SPARE_SHOWS;
    work->shown_bytes = SHOWN_BYTES * work->raw_bytes;
    work->level = 0;
    *slice = (Slice){&bag->cells[0], 0, 0};
    *opcode = bits_left(slice) < OPCODE_BITS ? -1 : (int64_t)read_bits(here(slice), OPCODE_BITS);
    return true;
}

Result decode_body(Work *work, const uint8_t *data, size_t size, bool with_wallets,
                   int64_t *opcode)
{
    Slice slice;
    work->out.size = 0;
    if (!begin(work, data, size, &slice, opcode))
        return DECLINED;
    if (is_used_up(&slice)) {
        PUT(&work->out, "{\"@type\":\"empty_cell\"}");
        return READ;
    }
    Mark mark = set_mark(work);
    Result result = decode_opcode(work, slice, MAX_PAYLOADS);
    int32_t nodes[] = {work->program->signed_node, work->program->wallet_node};
    for (int i = 0; result == FAILED && i < (with_wallets ? 2 : 1); i++) {
        Slice attempt = slice;
        go_back(work, mark);
        result = decode_node(work, nodes[i], &attempt, MAX_PAYLOADS);
        if (result == READ && !is_used_up(&attempt))
            result = FAILED;
    }
    return work->out.is_full ? DECLINED : result;
}

Result decode_field(Work *work, const uint8_t *data, size_t size, uint32_t opcode, int32_t node,
                    int32_t field, bool *is_there)
{
    Slice slice;
    int64_t found;
    uint64_t numbers[MAX_PARTS];
    const int32_t *code = work->program->code + work->program->starts[node];
    if (code[0] != OP_RECORD || !begin(work, data, size, &slice, &found))
        return DECLINED;
    NEED(found == (int64_t)opcode);
    slice.pos += OPCODE_BITS;
    *is_there = false;
    Result result = READ;
    for (int32_t i = 0; i < code[2] && result == READ; i++) {
        const int32_t *part = code + 3 + PART_WORDS * i;
        if (!is_present(part, numbers))
            continue;
        work->out.is_muted = i != field;
        *is_there |= i == field;
        result = decode_part(work, part, numbers + i, &slice, numbers, MAX_PAYLOADS);
    }
    work->out.is_muted = false;
    return work->out.is_full ? DECLINED : result;
}
