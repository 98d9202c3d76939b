/* The target of decoding, and the limits of one block. */
#include "decoder.h"

size_t decoder_reset(Decoder *decoder)
{
    size_t kept = decoder->tree.memory.cells.capacity + decoder->tree.memory.hashes.capacity;
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        Table *table = &decoder->tables[i];
        kept += table->capacity * LAYOUTS[i].row_bytes + table->heap.capacity;
        table_reset(table);
    }
    free(decoder->state_cells.slots);
    decoder->state_cells = (HashSet){0};
    decoder->tops = 0;
    return kept;
}

void decoder_free(Decoder *decoder)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        table_free(&decoder->tables[i]);
    free(decoder->state_cells.slots);
    writer_free(&decoder->writer);
    tree_free(&decoder->tree);
    heap_free(&decoder->known);
    heap_free(&decoder->marks);
    heap_free(&decoder->touched);
    heap_free(&decoder->found);
    heap_free(&decoder->cells);
    free(decoder);
}

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
