/* Decodes message cells to columns of `messages` from msg_hash on. TL-B: message$_, int_msg_info$0,
   ext_in_msg_info$10, ext_out_msg_info$11, MsgAddress, StateInit. Like
   ingest/decode/block/message.py and currency.py. */
#include "decoder.h"

#define OPCODE_BITS 32

typedef struct {
    Word kind; /* std, none, extern or var */
    bool has_account;
    int32_t workchain;
    Hash account;
} Address;

/* Replace the first bits of an address by those of an anycast prefix. */
static void rewrite_prefix(Hash *account, uint32_t prefix, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++) {
        unsigned mask = 0x80u >> (i & 7);
        account->bytes[i >> 3] &= (uint8_t)~mask;
        if (prefix >> (depth - 1 - i) & 1)
            account->bytes[i >> 3] |= (uint8_t)mask;
    }
}

/* Read addr_none$00, addr_extern$01, addr_std$10, addr_var$11; false for a wrong anycast depth.
   An addr_var of 256 bits is the same to the node as addr_std (extract_std_address). */
static bool read_address(Slice *slice, Address *to)
{
    static const uint8_t kinds[] = {WORD_none, WORD_extern, WORD_std, WORD_var};
    uint32_t prefix = 0;
    unsigned depth = 0, tag = (unsigned)slice_uint(slice, 2);
    to->kind = kinds[tag];
    to->has_account = false;
    if (to->kind == WORD_none)
        return true;
    if (to->kind == WORD_extern) {
        slice_skip(slice, (unsigned)slice_uint(slice, 9));
        return true;
    }
    if (slice_bit(slice)) {
        depth = (unsigned)slice_uint(slice, 5);
        if (!depth || depth > MAX_ANYCAST_DEPTH)
            return false;
        prefix = (uint32_t)slice_uint(slice, depth);
    }
    unsigned bits = to->kind == WORD_var ? (unsigned)slice_uint(slice, 9) : 256;
    unsigned workchain_bits = to->kind == WORD_var ? 32 : 8;
    if (bits != 256) {
        slice_skip(slice, workchain_bits + bits);
        return true;
    }
    to->has_account = true;
    to->workchain = (int32_t)slice_int(slice, workchain_bits);
    to->account = slice_hash(slice);
    rewrite_prefix(&to->account, prefix, depth);
    return true;
}

static void set_source(Row_messages *row, const Address *address)
{
    SET(row, source_kind, (uint8_t)address->kind);
    if (address->has_account) {
        SET(row, source_workchain, address->workchain);
        SET(row, source, address->account);
    }
}

static void set_destination(Row_messages *row, const Address *address)
{
    SET(row, destination_kind, (uint8_t)address->kind);
    if (address->has_account) {
        SET(row, destination_workchain, address->workchain);
        SET(row, destination, address->account);
    }
}

static void read_created(Row_messages *row, Slice *slice)
{
    SET(row, created_lt, slice_lt(slice));
    SET(row, created_at, (int64_t)slice_uint(slice, 32));
}

/* int_msg_info$0. */
static Status read_int_info(Block *block, Row_messages *row, Slice *slice)
{
    Address source, destination;
    uint32_t currencies;
    SET(row, kind, WORD_int);
    SET(row, ihr_disabled, slice_bit(slice));
    SET(row, bounce, slice_bit(slice));
    SET(row, bounced, slice_bit(slice));
    if (!read_address(slice, &source) || !read_address(slice, &destination))
        return NOT_MINE;
    set_source(row, &source);
    set_destination(row, &destination);
    SET(row, value, slice_grams(slice));
    if (slice_maybe_ref(slice, &currencies)) {
        Span text;
        Status status = write_currencies(block, TABLE_messages, currencies, &text);
        if (status != DONE)
            return status;
        SET(row, value_extra_currencies, text);
    }
    /* Since global version 12 extra_flags replace ihr_fee. */
    if (block->has_extra_flags) {
        SET(row, extra_flags, slice_amount(slice, 4));
        SET(row, ihr_fee, 0);
    } else {
        SET(row, ihr_fee, slice_grams(slice));
    }
    SET(row, fwd_fee, slice_grams(slice));
    read_created(row, slice);
    return DONE;
}

/* ext_out_msg_info after its tag. */
static Status read_ext_out_info(Row_messages *row, Slice *slice)
{
    Address source, destination;
    SET(row, kind, WORD_ext_out);
    if (!read_address(slice, &source) || !read_address(slice, &destination))
        return NOT_MINE;
    set_source(row, &source);
    SET(row, destination_kind, (uint8_t)destination.kind);
    read_created(row, slice);
    return DONE;
}

/* ext_in_msg_info after its tag; `destination` becomes a slice of the address's bits. */
static Status read_ext_in_info(Row_messages *row, Slice *slice, Slice *destination)
{
    Address from, to;
    SET(row, kind, WORD_ext_in);
    if (!read_address(slice, &from))
        return NOT_MINE;
    *destination = *slice;
    if (!read_address(slice, &to))
        return NOT_MINE;
    destination->end = slice->pos;
    SET(row, source_kind, (uint8_t)from.kind);
    set_destination(row, &to);
    Amount import_fee = slice_amount(slice, 4);
    if (!amount_is_wide(import_fee))
        SET(row, import_fee, (int64_t)import_fee.low);
    return DONE;
}

/* A body or StateInit as a cell of its own. */
typedef struct {
    Hash hash;
    uint16_t depth;
    Span boc;
} Content;

/* Get the content in a cell of its own, which may be exotic. */
static Status take_content(Block *block, uint32_t cell, Content *to)
{
    to->hash = *tree_hash(&block->tree, cell, MAX_LEVEL);
    to->depth = tree_depth(&block->tree, cell);
    return keep_bag(block, TABLE_messages, cell, &to->boc);
}

/* Get inline content: bits and references up to the ends of `from`. */
static Status build_content(Block *block, const Slice *from, Content *to)
{
    uint8_t head[2 + 128];
    Slice slice = *from;
    unsigned bits = slice_bits_left(&slice), refs = slice_refs_left(&slice);
    slice_tail(&slice, head + 2);
    if (refs) {
        uint32_t cell;
        Status status =
            tree_append(&block->tree, head + 2, bits, slice.refs + slice.ref, refs, &cell);
        return status == DONE ? take_content(block, cell, to) : status;
    }
    Heap *heap = &block->decoder->tables[TABLE_messages].heap;
    size_t size = pack_head(head, 0, bits), start = heap->size;
    sha256(head, size, &to->hash);
    to->depth = 0;
    Status status = write_single(head, size, heap);
    to->boc = (Span){start, (uint32_t)(heap->size - start)};
    return status == DONE && !spend(block, to->boc.size) ? NOT_MINE : status;
}

/* init:(Maybe (Either StateInit ^StateInit)). */
static Status read_init(Block *block, Row_messages *row, Slice *slice)
{
    Content init = {0};
    Status status;
    if (!slice_bit(slice))
        return DONE;
    if (slice_bit(slice)) {
        status = take_content(block, slice_ref(slice), &init);
    } else {
        Slice inner = *slice;
        if (slice_bit(slice)) /* fixed_prefix_length:(Maybe (## 5)) */
            slice_skip(slice, 5);
        if (slice_bit(slice)) /* special:(Maybe TickTock) */
            slice_skip(slice, 2);
        for (unsigned i = 0; i < 3; i++) /* code, data, library: Maybe ^ */
            if (slice_bit(slice))
                slice_ref(slice);
        if (slice->failed)
            return NOT_MINE;
        inner.end = slice->pos;
        inner.ref_end = slice->ref;
        status = build_content(block, &inner, &init);
    }
    SET(row, init_state_hash, init.hash);
    SET(row, init_state, init.boc);
    return status;
}

/* body:(Either X ^X); the opcode is its first 32 bits. */
static Status read_body(Block *block, Row_messages *row, Slice *slice, Content *body)
{
    Status status;
    if (!slice_bit(slice)) {
        Slice rest = *slice;
        status = slice->failed ? NOT_MINE : build_content(block, slice, body);
        if (slice_bits_left(&rest) >= OPCODE_BITS)
            SET(row, opcode, (int32_t)slice_int(&rest, OPCODE_BITS));
    } else {
        uint32_t cell = slice_ref(slice);
        Slice rest = slice_open(&block->tree, cell);
        status = slice->failed ? NOT_MINE : take_content(block, cell, body);
        if (slice_bits_left(&rest) >= OPCODE_BITS)
            SET(row, opcode, (int32_t)slice_int(&rest, OPCODE_BITS));
    }
    SET(row, body_hash, body->hash);
    SET(row, body, body->boc);
    return status;
}

/* Hash an external message in its normalized form (TEP-467): ext_in_msg_info$10, src
   addr_none$00, dest unchanged, import_fee 0, no init, body in a reference. */
static void normalize(Row_messages *row, Slice *destination, const Content *body)
{
    uint8_t head[2 + 128 + 2 + HASH_BYTES] = {0};
    unsigned bits = slice_bits_left(destination);
    uint8_t *to = head + 2;
    *to = 0x80;
    /* The destination begins after four bits, so each of its bytes spans two. */
    for (unsigned left = bits; left; to++) {
        unsigned count = left < 8 ? left : 8;
        unsigned byte = (unsigned)slice_uint(destination, count) << (8 - count);
        to[0] |= (uint8_t)(byte >> 4);
        to[1] = (uint8_t)(byte << 4);
        left -= count;
    }
    /* Then four bits of import_fee, one of init, one for the body in a reference. */
    unsigned last = 4 + bits + 5;
    head[2 + last / 8] |= (uint8_t)(0x80 >> (last & 7));
    size_t size = pack_head(head, 1, last + 1);
    store_be(head + size, body->depth, 2);
    memcpy(head + size + 2, body->hash.bytes, HASH_BYTES);
    Hash hash;
    sha256(head, size + 2 + HASH_BYTES, &hash);
    SET(row, hash_norm, hash);
}

Status decode_message(Block *block, Row_messages *row, uint32_t cell)
{
    Slice slice = slice_open(&block->tree, cell), destination = slice;
    Content body = {0};
    Status status;
    bool is_external = slice_bit(&slice), is_out = is_external && slice_bit(&slice);
    if (!is_external)
        status = read_int_info(block, row, &slice);
    else if (is_out)
        status = read_ext_out_info(row, &slice);
    else
        status = read_ext_in_info(row, &slice, &destination);
    if (status == DONE && (slice.failed || slice.wide))
        status = NOT_MINE;
    if (status == DONE)
        status = read_init(block, row, &slice);
    if (status == DONE)
        status = read_body(block, row, &slice, &body);
    if (status != DONE || slice.failed)
        return status != DONE ? status : NOT_MINE;
    SET(row, msg_hash, *tree_hash(&block->tree, cell, MAX_LEVEL));
    if (is_external && !is_out)
        normalize(row, &destination, &body);
    return DONE;
}
