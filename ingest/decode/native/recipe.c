/* Checks whether the cells of a transaction follow from its rows: they are encoded from the rows
   and compared with the original. Like ingest/decode/block/recipe.py. */
#include "decoder.h"
#include "encode.h"

static bool is_usual_root(const Row_transactions *row, const Cell *cell)
{
    Bits bits;
    bits_open(&bits);
    put_root(&bits, row);
    return bits_are_all(&bits, cell, 3);
}

/* Check the description and its children. */
static bool is_usual_description(const Tree *tree, const Row_transactions *row, const Cell *cell)
{
    Bits bits;
    bool has_run = has_run_cell(row), has_action = has_action_cell(row);
    bits_open(&bits);
    put_description(&bits, row);
    if (!bits_are_all(&bits, cell, (unsigned)has_run + has_action))
        return false;
    if (has_run) {
        bits_open(&bits);
        put_run(&bits, row);
        if (!bits_are_all(&bits, &tree->cells[cell->refs[0]], 0))
            return false;
    }
    if (!has_action)
        return true;
    bits_open(&bits);
    put_action(&bits, row);
    return bits_are_all(&bits, &tree->cells[cell->refs[has_run]], 0);
}

static bool is_usual_node(const Tree *tree, uint32_t node, uint32_t first, uint32_t last,
                          unsigned left)
{
    const Cell *cell = &tree->cells[node];
    Bits bits;
    bits_open(&bits);
    unsigned rest = put_out_node(&bits, first, last, left);
    if (!bits_are_all(&bits, cell, rest ? 2 : 1))
        return false;
    if (!rest)
        return true;
    uint32_t fork = out_map_fork(last, rest);
    return is_usual_node(tree, cell->refs[0], first, fork - 1, rest - 1) &&
           is_usual_node(tree, cell->refs[1], fork, last, rest - 1);
}

static bool is_usual_holder(const Tree *tree, const Row_transactions *row, const Cell *cell)
{
    Bits bits;
    bool has_in = row->has_in_msg_hash, has_out = row->outmsg_cnt > 0;
    bits_open(&bits);
    put_holder(&bits, has_in, has_out);
    if (!bits_are_all(&bits, cell, (unsigned)has_in + has_out))
        return false;
    return !has_out || is_usual_node(tree, cell->refs[has_in], 0, (uint32_t)row->outmsg_cnt - 1,
                                     OUT_KEY_BITS);
}

bool is_usual_info(const Row_messages *row, const Slice *address, unsigned end, const Cell *cell)
{
    Bits bits;
    bits_open(&bits);
    put_info(&bits, row, address);
    return bits.count == end && bits_lead(&bits, cell);
}

/* Append the layout of a message to a recipe, and the bits of its external address to `tail`. */
static bool add_layout(Heap *recipe, Heap *tail, const MessageLayout *layout)
{
    Slice address = layout->address;
    unsigned bits = slice_bits_left(&address);
    if (!heap_append(recipe, &layout->flags, 1) || !heap_reserve(tail, 2 + MAX_BITS / 8 + 1))
        return false;
    if (!(layout->flags & EXTERNAL_ADDRESS))
        return true;
    store_be(tail->data + tail->size, bits, 2);
    tail->size += 2;
    for (unsigned size = bits & 7 ? bits & 7 : 8; bits; bits -= size, size = 8)
        tail->data[tail->size++] = (uint8_t)slice_uint(&address, size);
    return true;
}

Status keep_recipe(Block *block, Row_transactions *row, uint32_t cell, const Cells *cells,
                   const MessageLayout *layouts, size_t count)
{
    const Tree *tree = &block->tree;
    Heap *to = &block->decoder->tables[TABLE_transactions].heap, *tail = &block->decoder->tail;
    Span span;
    bool is_usual = is_usual_root(row, &tree->cells[cell]) &&
                    is_usual_holder(tree, row, &tree->cells[cells->messages]) &&
                    is_usual_description(tree, row, &tree->cells[cells->description]);
    for (size_t i = 0; i < count && is_usual; i++)
        is_usual = layouts[i].is_usual;
    if (!is_usual) {
        Status status = keep_bag(block, TABLE_transactions, cell, &span);
        SET(row, boc, span);
        return status;
    }
    size_t start = to->size;
    tail->size = 0;
    for (size_t i = 0; i < count; i++)
        if (!add_layout(to, tail, &layouts[i]))
            return NO_MEMORY;
    if (!heap_append(to, tail->data, tail->size))
        return NO_MEMORY;
    span = (Span){start, (uint32_t)(to->size - start)};
    SET(row, recipe, span);
    return spend(block, span.size) ? DONE : NOT_MINE;
}
