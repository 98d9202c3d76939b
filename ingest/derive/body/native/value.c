/* Scalar values: addresses, numbers of any length, texts, and cells shown raw. */
#include "slice.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ANYCAST_BITS 30

static Result decode_anycast(Work *work, Slice *slice)
{
    Out *out = &work->out;
    uint64_t is_there, depth;
    PUT(out, ",\"anycast\":");
    NEED(load(slice, 1, &is_there));
    if (!is_there) {
        PUT(out, "{\"@type\":\"nothing_from_maybe\"}");
        return READ;
    }
    NEED(load(slice, 5, &depth) && depth && depth <= MAX_ANYCAST_BITS);
    NEED(bits_left(slice) >= depth);
    PUT(out, "{\"@type\":\"something_from_maybe\",\"value\":{\"@type\":\"anycast_info\",\"depth\":");
    put_small(out, depth);
    PUT(out, ",\"rewrite_pfx\":");
    put_bits(out, here(slice), (unsigned)depth);
    slice->pos += (unsigned)depth;
    PUT(out, "}}");
    return READ;
}

static Result put_address_bits(Work *work, Slice *slice, unsigned bits)
{
    NEED(bits_left(slice) >= bits);
    put_bits(&work->out, here(slice), bits);
    slice->pos += bits;
    PUT(&work->out, "}");
    return READ;
}

Result decode_address(Work *work, Slice *slice)
{
    Out *out = &work->out;
    uint64_t kind, bits = 256;
    NEED(load(slice, 2, &kind));
    if (kind == 0) {
        PUT(out, "{\"@type\":\"addr_none\"}");
        return READ;
    }
    if (kind == 1) {
        NEED(load(slice, 9, &bits));
        PUT(out, "{\"@type\":\"addr_extern\",\"len\":");
        put_small(out, bits);
        PUT(out, ",\"external_address\":");
        return put_address_bits(work, slice, (unsigned)bits);
    }
    if (kind == 2)
        PUT(out, "{\"@type\":\"addr_std\"");
    else
        PUT(out, "{\"@type\":\"addr_var\"");
    TRY(decode_anycast(work, slice));
    if (kind == 3) {
        NEED(load(slice, 9, &bits));
        PUT(out, ",\"addr_len\":");
        put_small(out, bits);
    }
    unsigned width = kind == 2 ? 8 : 32;
    NEED(bits_left(slice) >= width);
    PUT(out, ",\"workchain_id\":");
    put_number(out, here(slice), width, true);
    slice->pos += width;
    PUT(out, ",\"address\":");
    return put_address_bits(work, slice, (unsigned)bits);
}

Result decode_var_uint(Work *work, const int32_t *code, Slice *slice)
{
    Out *out = &work->out;
    uint64_t count;
    NEED(load(slice, (unsigned)code[2], &count) && count < (uint64_t)code[1]);
    NEED(bits_left(slice) >= count * 8);
    PUT(out, "{\"@type\":\"var_uint\",\"len\":");
    put_small(out, count);
    PUT(out, ",\"value\":");
    put_number(out, here(slice), (unsigned)count * 8, false);
    slice->pos += (unsigned)count * 8;
    PUT(out, "}");
    return READ;
}

/* Append the bytes of a cell to a text. */
static Result gather(Work *work, Slice *slice, unsigned bytes, size_t *size)
{
    if (*size + bytes + 1 > work->snake_room) {
        size_t room = (*size + bytes) * 2 + 4096;
        uint8_t *grown = realloc(work->snake, room);
        if (!grown)
            return DECLINED;
        work->snake = grown;
        work->snake_room = room;
    }
    copy_bits(here(slice), bytes * 8, work->snake + *size);
    slice->pos += bytes * 8;
    *size += bytes;
    return READ;
}

Result decode_snake(Work *work, Slice *slice, bool is_text)
{
    size_t size = 0;
    Slice part = *slice;
    slice->pos = slice->cell->bits;
    slice->ref += refs_left(slice) ? 1 : 0;
    for (;;) {
        NEED(bits_left(&part) % 8 == 0 && refs_left(&part) <= 1);
        TRY(gather(work, &part, bits_left(&part) / 8, &size));
        if (!refs_left(&part))
            break;
        Slice child;
        load_child(work, &part, &child);
        part = child;
        TRY(visit(work));
    }
    if (is_text)
        return put_utf8(&work->out, work->snake, size) ? READ : FAILED;
    put_hex(&work->out, work->snake, size);
    return READ;
}

Result decode_short_text(Work *work, Slice *slice)
{
    uint64_t count;
    size_t size = 0;
    NEED(load(slice, 8, &count) && bits_left(slice) >= count * 8);
    PUT(&work->out, "{\"@type\":\"telemint_text\",\"len\":");
    put_small(&work->out, count);
    PUT(&work->out, ",\"text\":");
    TRY(gather(work, slice, (unsigned)count, &size));
    NEED(put_utf8(&work->out, work->snake, size));
    PUT(&work->out, "}");
    return READ;
}

Result decode_chunked_text(Work *work, Slice *slice)
{
    uint64_t chunks;
    size_t size = 0;
    NEED(load(slice, 8, &chunks));
    Slice child, *part = slice;
    for (uint64_t left = chunks; left; left--) {
        uint64_t count;
        NEED(load(part, 8, &count) && bits_left(part) >= count * 8);
        TRY(gather(work, part, (unsigned)count, &size));
        if (left > 1) {
            Slice next;
            NEED(load_child(work, part, &next));
            child = next;
            part = &child;
            TRY(visit(work));
        }
    }
    NEED(part == slice || is_used_up(part));
    PUT(&work->out, "{\"@type\":\"text\",\"chunks\":");
    put_small(&work->out, chunks);
    PUT(&work->out, ",\"text\":");
    TRY(gather(work, slice, 0, &size));
    NEED(put_utf8(&work->out, work->snake, size));
    PUT(&work->out, "}");
    return READ;
}

/* Show a cell: its decoded content if its opcode is known, else a bag of cells. */
static Result show_raw(Work *work, const Cell *cell, unsigned payloads)
{
    Out *out = &work->out;
    if (!cell->bits && !cell->ref_count) {
        PUT(out, "{\"@type\":\"empty_cell\"}");
        return READ;
    }
    if (--work->shows < 0)
        return DECLINED;
    if (payloads) {
        Result result = decode_opcode(work, (Slice){cell, 0, 0}, payloads - 1);
        if (result != FAILED)
            return result;
    }
    size_t size = write_light(&work->bag, cell, work->scratch);
    if (!size)
        size = write_ordered(&work->bag, cell, &work->order, &work->scratch, &work->scratch_room);
    work->raw_bytes -= (long)size;
    work->shown_bytes -= (long)size;
    if (!size || work->raw_bytes < 0 || work->shown_bytes < 0)
        return DECLINED;
    put_base64(out, work->scratch, size);
    return READ;
}

Result decode_rest(Work *work, Slice *slice, unsigned payloads)
{
    Slice from = *slice;
    slice->pos = slice->cell->bits;
    slice->ref = slice->cell->ref_count;
    if (!from.pos && !from.ref)
        return show_raw(work, from.cell, payloads);
    uint8_t data[128] = {0};
    unsigned bits = bits_left(&from);
    copy_bits(here(&from), bits, data);
    if (bits % 8)
        data[bits / 8] |= (uint8_t)(0x80 >> bits % 8);
    Cell rest = {.data = data, .bits = (uint16_t)bits, .byte_count = (uint8_t)((bits + 7) / 8)};
    while (refs_left(&from))
        rest.refs[rest.ref_count++] = from.cell->refs[from.ref++];
    return show_raw(work, &rest, payloads);
}

Result decode_linked_raw(Work *work, Slice *slice, unsigned payloads)
{
    Slice child;
    NEED(load_child(work, slice, &child));
    work->level++;
    Result result = show_raw(work, child.cell, payloads);
    work->level--;
    return result;
}
