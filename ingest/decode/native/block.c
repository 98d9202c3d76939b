/* Decodes one block to rows, appended to those of earlier blocks. */
#include "decoder.h"

#define EXTRA_FLAGS_VERSION 12
#define MASTERCHAIN (-1)

static Status check_root(Block *block)
{
    Status status = tree_digest_whole(&block->tree);
    if (status != DONE)
        return status;
    const Hash *root_hash = tree_hash(&block->tree, block->tree.root, MAX_LEVEL);
    return hash_equal(root_hash, &block->raw->root_hash) ? DONE : NOT_MINE;
}

/* Return whether the newest masterchain block names this one: then its file hash implies its root
   hash. */
static bool is_named(const Decoder *decoder, const RawBlock *raw)
{
    if (decoder->all_named && raw->workchain != MASTERCHAIN)
        return true;
    for (size_t i = decoder->tops; i < decoder->tables[TABLE_shard_blocks].count; i++) {
        const Row_shard_blocks *row = ROW(decoder->tables, shard_blocks, i);
        if (row->seqno == raw->seqno && row->shard == raw->shard &&
            row->workchain == raw->workchain && row->workchain != MASTERCHAIN &&
            hash_equal(&row->file_hash, &raw->file_hash) &&
            hash_equal(&row->root_hash, &raw->root_hash))
            return true;
    }
    return false;
}

/* Verify the hashes of the id; no block has 4 GiB. */
static Status open_block(Block *block)
{
    const RawBlock *raw = block->raw;
    Hash found;
    sha256(raw->data, raw->size, &found);
    if (!hash_equal(&found, &raw->file_hash) || raw->size > UINT32_MAX)
        return NOT_MINE;
    Status status = tree_parse(&block->tree, raw->data, raw->size);
    if (status == DONE && !is_named(block->decoder, raw))
        status = check_root(block);
    if (status != DONE)
        return status;
    block->known_count = block->tree.count;
    block->known = heap_renew(&block->decoder->known, block->known_count, sizeof *block->known);
    block->marks = heap_renew(&block->decoder->marks, block->known_count, 1);
    block->budget = BUDGET_FACTOR * raw->size + BUDGET_BYTES;
    if (!block->known || !block->marks)
        return NO_MEMORY;
    memset(block->known, 0, block->known_count * sizeof *block->known);
    return DONE;
}

static Status append_header(Block *block)
{
    Row_blocks *row = APPEND(block->decoder->tables, blocks);
    if (!row)
        return NO_MEMORY;
    *row = block->header;
    return DONE;
}

/* Return whether the configuration of a block has extra_flags. If it is unknown, use the version
   of the block's creator. */
static bool has_extra_flags(const Block *block)
{
    const Row_blocks *row = &block->header;
    for (size_t i = 0; i < block->decoder->version_count; i++)
        if (block->decoder->versions[i].key_seqno == row->prev_key_block_seqno)
            return block->decoder->versions[i].version >= EXTRA_FLAGS_VERSION;
    return row->has_gen_software_version && row->gen_software_version >= EXTRA_FLAGS_VERSION;
}

/* Return whether the header says which block it is of. */
static bool has_right_header(const Block *block)
{
    const Row_blocks *row = &block->header;
    return row->workchain == block->raw->workchain && row->shard == block->raw->shard &&
           row->seqno == block->raw->seqno;
}

Status decode_block(Decoder *decoder, const RawBlock *raw)
{
    Block block = {
        .decoder = decoder, .raw = raw, .tree = decoder->tree, .touched = decoder->touched};
    block.touched.size = 0;
    Status status = open_block(&block);
    if (status == DONE)
        status = read_header(&block);
    if (status == DONE && !has_right_header(&block))
        status = NOT_MINE;
    block.has_extra_flags = has_extra_flags(&block);
    if (status == DONE)
        status = decode_transactions(&block);
    if (status == DONE)
        status = append_header(&block);
    if (status == DONE)
        status = decode_update(&block);
    if (status == DONE && block.header.workchain == MASTERCHAIN)
        status = decode_shards(&block);
    tree_reset(&block.tree);
    decoder->tree = block.tree;
    decoder->touched = block.touched;
    return status;
}

Status decode_tops(Decoder *decoder, const RawBlock *raw, Row_blocks *header, Heap *commits,
                   Heap *extra)
{
    Block block = {.decoder = decoder, .raw = raw, .tree = decoder->tree, .commits = commits};
    Status status = tree_parse(&block.tree, raw->data, raw->size);
    block.budget = BUDGET_FACTOR * raw->size + BUDGET_BYTES;
    if (status == DONE)
        status = read_header(&block);
    if (status == DONE)
        status = decode_shards(&block);
    if (status == DONE && extra)
        status = write_part(&decoder->writer, &block.tree, block.custom, extra);
    *header = block.header;
    tree_reset(&block.tree);
    decoder->tree = block.tree;
    return status;
}
