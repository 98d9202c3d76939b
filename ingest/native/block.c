/* One block, from its bytes to rows behind those of the blocks before. */
#include "decoder.h"

#define EXTRA_FLAGS_VERSION 12
#define MASTERCHAIN (-1)

bool spend(Block *block, size_t bytes)
{
    if (bytes > block->budget)
        return false;
    block->budget -= bytes;
    return true;
}

Status keep_bag(Block *block, TableName table, uint32_t root, Span *to)
{
    Heap *heap = &block->decoder->tables[table].heap;
    size_t start = heap->size;
    Status status = write_bag(&block->decoder->writer, &block->tree, root, heap);
    *to = (Span){start, (uint32_t)(heap->size - start)};
    if (status == DONE && !spend(block, heap->size - start))
        return NOT_MINE;
    return status;
}

/* Check both hashes of the id; a file of 4 GiB is nobody's block. */
static Status open_block(Block *block)
{
    const RawBlock *raw = block->raw;
    const Sha256 *sha = &block->decoder->sha;
    Hash file_hash;
    sha256(sha, raw->data, raw->size, &file_hash);
    if (!hash_equal(&file_hash, &raw->file_hash) || raw->size > UINT32_MAX)
        return NOT_MINE;
    Status status = tree_parse(&block->tree, sha, raw->data, raw->size);
    if (status != DONE)
        return status;
    const Hash *root_hash = tree_hash(&block->tree, block->tree.root, MAX_LEVEL);
    if (!hash_equal(root_hash, &raw->root_hash))
        return NOT_MINE;
    block->known_count = block->tree.count;
    block->known = calloc(block->known_count, sizeof *block->known);
    block->marks = malloc(block->known_count);
    block->budget = BUDGET_FACTOR * raw->size + BUDGET_BYTES;
    return block->known && block->marks ? DONE : NO_MEMORY;
}

static Status append_header(Block *block)
{
    Row_blocks *row = APPEND(block->decoder->tables, blocks);
    if (!row)
        return NO_MEMORY;
    *row = block->header;
    return DONE;
}

Status decode_block(Decoder *decoder, const RawBlock *raw)
{
    Block block = {.decoder = decoder, .raw = raw};
    Status status = open_block(&block);
    if (status == DONE)
        status = read_header(&block);
    block.has_extra_flags = block.header.has_gen_software_version &&
                            block.header.gen_software_version >= EXTRA_FLAGS_VERSION;
    if (status == DONE)
        status = decode_transactions(&block);
    if (status == DONE)
        status = append_header(&block);
    if (status == DONE)
        status = decode_update(&block);
    if (status == DONE && block.header.workchain == MASTERCHAIN)
        status = decode_shards(&block);
    tree_free(&block.tree);
    heap_free(&block.touched);
    free(block.known);
    free(block.marks);
    return status;
}
