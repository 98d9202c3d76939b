/* Reads data of masterchain blocks: the shard tops, and the configuration of key blocks.
   TL-B: masterchain_block_extra#cca5, ShardHashes = HashmapE 32 ^(BinTree ShardDescr), bt_leaf$0,
   bt_fork$1, shard_descr#b, shard_descr_new#a, ConfigParams. Like header.py and config.py. */
#include "decoder.h"

#define MC_EXTRA_TAG 0xcca5
#define SHARD_PREFIX_MAX_BITS 60
#define KEY_BITS 32

static Status append_shard(Block *block, const Row_shard_blocks *values)
{
    Row_shard_blocks *row = APPEND(block->decoder->tables, shard_blocks);
    if (!row)
        return NO_MEMORY;
    if (!spend(block, sizeof *row))
        return NOT_MINE;
    *row = *values;
    SET(row, mc_seqno, block->header.seqno);
    return DONE;
}

/* Append the row of the masterchain block itself, which is listed with the tops. */
static Status append_own(Block *block)
{
    Row_shard_blocks row = {0};
    SET(&row, workchain, block->header.workchain);
    SET(&row, shard, block->header.shard);
    SET(&row, seqno, block->header.seqno);
    SET(&row, root_hash, block->raw->root_hash);
    SET(&row, file_hash, block->raw->file_hash);
    SET(&row, start_lt, block->header.start_lt);
    SET(&row, end_lt, block->header.end_lt);
    SET(&row, gen_utime, block->header.gen_utime);
    return append_shard(block, &row);
}

/* Read ShardDescr up to gen_utime. */
static Status read_shard_descr(Block *block, Slice *leaf, int32_t workchain, uint64_t shard)
{
    Row_shard_blocks row = {0};
    uint64_t tag = slice_uint(leaf, 4);
    if (tag != 0xb && tag != 0xa)
        return NOT_MINE;
    SET(&row, workchain, workchain);
    SET(&row, shard, (int64_t)shard);
    SET(&row, seqno, (int64_t)slice_uint(leaf, 32));
    int64_t committed_by = (int64_t)slice_uint(leaf, 32);
    SET(&row, start_lt, slice_lt(leaf));
    SET(&row, end_lt, slice_lt(leaf));
    SET(&row, root_hash, slice_hash(leaf));
    SET(&row, file_hash, slice_hash(leaf));
    /* flags, next_catchain_seqno, next_validator_shard, min_ref_mc_seqno */
    slice_skip(leaf, 8 + 32 + 64 + 32);
    SET(&row, gen_utime, (int64_t)slice_uint(leaf, 32));
    if (leaf->failed || leaf->wide)
        return NOT_MINE;
    if (block->commits && !heap_append(block->commits, &committed_by, sizeof committed_by))
        return NO_MEMORY;
    return append_shard(block, &row);
}

/* Walk BinTree, left to right; the path is the shard's prefix. */
static Status read_shard_tree(Block *block, uint32_t root, int32_t workchain)
{
    struct {
        uint32_t cell;
        uint64_t shard;
    } todo[SHARD_PREFIX_MAX_BITS + 2], at;
    unsigned count = 1;
    todo[0].cell = root;
    todo[0].shard = 1ULL << 63;
    while (count) {
        at = todo[--count];
        Slice node = slice_open(&block->tree, at.cell);
        if (!slice_bit(&node)) {
            Status status = read_shard_descr(block, &node, workchain, at.shard);
            if (status != DONE)
                return status;
            continue;
        }
        uint64_t half = (at.shard & -at.shard) >> 1;
        uint32_t left = slice_ref(&node), right = slice_ref(&node);
        if (node.failed || half < 1ULL << (63 - SHARD_PREFIX_MAX_BITS))
            return NOT_MINE;
        todo[count].cell = right;
        todo[count++].shard = at.shard + half;
        todo[count].cell = left;
        todo[count++].shard = at.shard - half;
    }
    return DONE;
}

static Status read_tops(Block *block, uint32_t root)
{
    Hashmap map;
    Hash key;
    Slice value;
    hashmap_open(&map, &block->tree, root, KEY_BITS);
    while (hashmap_next(&map, &key, &value)) {
        uint32_t tree = slice_ref(&value);
        if (value.failed)
            return NOT_MINE;
        Status status = read_shard_tree(block, tree, (int32_t)load_be(key.bytes, 4));
        if (status != DONE)
            return status;
    }
    return map.failed ? NOT_MINE : DONE;
}

static Status read_config(Block *block, uint32_t root)
{
    Hashmap map;
    Hash key;
    Slice value;
    Status status = tree_digest(&block->tree, &root, 1);
    if (status == DONE)
        status = writer_open(&block->decoder->writer, &block->tree);
    if (status != DONE)
        return status;
    hashmap_open(&map, &block->tree, root, KEY_BITS);
    while (hashmap_next(&map, &key, &value)) {
        uint32_t cell = slice_ref(&value);
        Row_config_params *row = APPEND(block->decoder->tables, config_params);
        Span boc;
        if (!row)
            return NO_MEMORY;
        if (value.failed)
            return NOT_MINE;
        SET(row, mc_seqno, block->raw->mc_seqno);
        SET(row, utime, block->header.gen_utime);
        SET(row, param, (int32_t)load_be(key.bytes, 4));
        SET(row, hash, *tree_hash(&block->tree, cell, MAX_LEVEL));
        status = keep_bag(block, TABLE_config_params, cell, &boc);
        if (status != DONE)
            return status;
        SET(row, boc, boc);
    }
    return map.failed ? NOT_MINE : DONE;
}

Status decode_shards(Block *block)
{
    uint32_t tops = 0, config = 0, other;
    if (!block->has_custom)
        return NOT_MINE;
    Slice extra = slice_open(&block->tree, block->custom);
    if (slice_uint(&extra, 16) != MC_EXTRA_TAG)
        return NOT_MINE;
    bool key_block = slice_bit(&extra);
    bool has_tops = slice_maybe_ref(&extra, &tops);
    slice_maybe_ref(&extra, &other); /* the root of shard_fees; its sums follow */
    slice_skip_currencies(&extra);
    slice_skip_currencies(&extra);
    slice_ref(&extra); /* signatures of the previous block, recover_create_msg and mint_msg */
    if (key_block) {
        slice_skip(&extra, 256); /* config_addr */
        config = slice_ref(&extra);
    }
    if (extra.failed || (key_block && block->commits))
        return NOT_MINE;
    block->decoder->tops = block->decoder->tables[TABLE_shard_blocks].count;
    Status status = append_own(block);
    if (status == DONE && has_tops)
        status = read_tops(block, tops);
    if (status == DONE && key_block)
        status = read_config(block, config);
    return status;
}
