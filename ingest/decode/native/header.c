/* Reads the header of a block. TL-B: block#11ef55aa, block_info#9bc7a987, ext_blk_ref$_,
   shard_ident$00, block_extra#4a33f6fd, capabilities#c4, !merkle_update#04. Like
   ingest/decode/block/header.py. */
#include "decoder.h"

#define BLOCK_TAG 0x11ef55aa
#define INFO_TAG 0x9bc7a987
#define EXTRA_TAG 0x4a33f6fd
#define GLOBAL_VERSION_TAG 0xc4
#define SHARD_PREFIX_MAX_BITS 60
#define NEW_HASH_AT 33
#define HAS_GEN_SOFTWARE 1
#define MICROSECONDS 1000000

/* ExtBlkRef: end_lt, seqno, root_hash, file_hash. */
typedef struct {
    int64_t seqno;
    Hash root_hash, file_hash;
} BlockRef;

static BlockRef read_block_ref(Slice *slice)
{
    BlockRef ref;
    slice_skip(slice, 64);
    ref.seqno = (int64_t)slice_uint(slice, 32);
    ref.root_hash = slice_hash(slice);
    ref.file_hash = slice_hash(slice);
    return ref;
}

bool read_shard_ident(Slice *slice, int64_t *workchain, uint64_t *shard)
{
    bool right_tag = slice_uint(slice, 2) == 0;
    unsigned prefix_bits = (unsigned)slice_uint(slice, 6);
    *workchain = slice_int(slice, 32);
    *shard = slice_uint(slice, 64);
    if (!right_tag || prefix_bits > SHARD_PREFIX_MAX_BITS)
        return false;
    *shard |= 1ULL << (63 - prefix_bits);
    return true;
}

/* Read BlkPrevInfo; the shards of the parents follow from the block's own shard. */
static bool read_previous(Block *block, uint32_t cell, uint64_t shard)
{
    Row_blocks *row = &block->header;
    Slice slice = slice_open(&block->tree, cell);
    uint64_t mark = shard & -shard;
    BlockRef left;
    SET(row, prev_shard, (int64_t)shard);
    if (row->after_merge) {
        Slice one = slice_open(&block->tree, slice_ref(&slice));
        Slice two = slice_open(&block->tree, slice_ref(&slice));
        left = read_block_ref(&one);
        BlockRef right = read_block_ref(&two);
        if (one.failed || two.failed)
            return false;
        SET(row, prev_shard, (int64_t)(shard - (mark >> 1)));
        SET(row, prev2_shard, (int64_t)(shard + (mark >> 1)));
        SET(row, prev2_seqno, right.seqno);
        SET(row, prev2_root_hash, right.root_hash);
        SET(row, prev2_file_hash, right.file_hash);
    } else {
        left = read_block_ref(&slice);
        if (row->after_split) {
            if (mark >> 63)
                return false;
            SET(row, prev_shard, (int64_t)((shard - mark) | mark << 1));
        }
    }
    SET(row, prev_seqno, left.seqno);
    SET(row, prev_root_hash, left.root_hash);
    SET(row, prev_file_hash, left.file_hash);
    return !slice.failed;
}

static void read_flags(Slice *info, Row_blocks *row)
{
    SET(row, after_merge, slice_bit(info));
    SET(row, before_split, slice_bit(info));
    SET(row, after_split, slice_bit(info));
    SET(row, want_split, slice_bit(info));
    SET(row, want_merge, slice_bit(info));
    SET(row, key_block, slice_bit(info));
    SET(row, vert_seqno_incr, slice_bit(info));
    SET(row, flags, (int32_t)slice_uint(info, 8));
}

static bool read_info(Block *block, uint32_t cell)
{
    Row_blocks *row = &block->header;
    Slice info = slice_open(&block->tree, cell);
    int64_t workchain;
    uint64_t shard;
    if (slice_uint(&info, 32) != INFO_TAG)
        return false;
    SET(row, version, (int64_t)slice_uint(&info, 32));
    bool not_master = slice_bit(&info);
    read_flags(&info, row);
    SET(row, seqno, (int64_t)slice_uint(&info, 32));
    SET(row, vert_seqno, (int64_t)slice_uint(&info, 32));
    if (!read_shard_ident(&info, &workchain, &shard))
        return false;
    SET(row, workchain, (int32_t)workchain);
    SET(row, shard, (int64_t)shard);
    SET(row, gen_utime, (int64_t)slice_uint(&info, 32));
    SET(row, time, row->gen_utime * MICROSECONDS);
    SET(row, start_lt, slice_lt(&info));
    SET(row, end_lt, slice_lt(&info));
    SET(row, validator_list_hash_short, (int32_t)slice_int(&info, 32));
    SET(row, gen_catchain_seqno, (int64_t)slice_uint(&info, 32));
    SET(row, min_ref_mc_seqno, (int64_t)slice_uint(&info, 32));
    SET(row, prev_key_block_seqno, (int64_t)slice_uint(&info, 32));
    if (row->flags & HAS_GEN_SOFTWARE) {
        if (slice_uint(&info, 8) != GLOBAL_VERSION_TAG)
            return false;
        SET(row, gen_software_version, (int64_t)slice_uint(&info, 32));
        SET(row, gen_software_capabilities, slice_int(&info, 64));
    }
    SET(row, master_ref_seqno, 0);
    if (not_master) {
        Slice master = slice_open(&block->tree, slice_ref(&info));
        SET(row, master_ref_seqno, read_block_ref(&master).seqno);
        info.failed |= master.failed;
    }
    uint32_t previous = slice_ref(&info);
    return !info.failed && !info.wide && read_previous(block, previous, shard);
}

/* Read BlockExtra; the message descriptions are skipped. */
static bool read_extra(Block *block)
{
    Row_blocks *row = &block->header;
    Slice extra = slice_open(&block->tree, block->extra);
    if (slice_uint(&extra, 32) != EXTRA_TAG)
        return false;
    slice_ref(&extra);
    slice_ref(&extra);
    block->account_blocks = slice_ref(&extra);
    SET(row, rand_seed, slice_hash(&extra));
    SET(row, created_by, slice_hash(&extra));
    block->has_custom = slice_maybe_ref(&extra, &block->custom);
    return !extra.failed;
}

Status read_header(Block *block)
{
    Row_blocks *row = &block->header;
    Slice slice = slice_open(&block->tree, block->tree.root);
    if (slice_uint(&slice, 32) != BLOCK_TAG)
        return NOT_MINE;
    SET(row, global_id, (int32_t)slice_int(&slice, 32));
    uint32_t info = slice_ref(&slice);
    slice_ref(&slice); /* value_flow */
    block->state_update = slice_ref(&slice);
    block->extra = slice_ref(&slice);
    const Cell *update = &block->tree.cells[block->state_update];
    if (slice.failed || cell_kind(update) != MERKLE_UPDATE)
        return NOT_MINE;
    if (!read_info(block, info) || !read_extra(block))
        return NOT_MINE;
    Hash new_hash;
    memcpy(new_hash.bytes, update->data + NEW_HASH_AT, HASH_BYTES);
    SET(row, state_root_hash, new_hash);
    SET(row, mc_seqno, block->raw->mc_seqno);
    SET(row, root_hash, block->raw->root_hash);
    SET(row, file_hash, block->raw->file_hash);
    SET(row, boc_bytes, (int64_t)block->raw->size);
    return DONE;
}
