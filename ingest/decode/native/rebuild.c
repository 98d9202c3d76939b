/* The cells are built in one array, each before those it refers to: the transaction's own cells,
   the nodes of its map of messages, the messages, and then the cells in their bodies and
   StateInits. They are checked, hashed and written like the cells of a block. */
#include "rebuild.h"

#include "encode.h"

#define MAGIC 0xb5ee9c72
#define MAX_CELLS (UINT32_MAX / 16)

/* Indices of a transaction's own cells; the children of the description follow. */
enum { ROOT, HOLDER, UPDATE, DESCRIPTION, FIRST_BELOW };

typedef struct {
    const InputRows *rows;
    Heap cells; /* Cell */
    Bits *bits; /* of the cells that are encoded here, which are the first */
    uint32_t next_node, first_message;
    Tree content;
    Slice recipe;
} Building;

static uint32_t count_cells(const Building *building)
{
    return (uint32_t)(building->cells.size / sizeof(Cell));
}

/* Start the bits of a cell. */
static Bits *open_cell(Building *building, uint32_t at)
{
    bits_open(&building->bits[at]);
    return &building->bits[at];
}

/* Finish a started cell; false if it is invalid. */
static bool end_cell(Building *building, uint32_t at, const uint32_t *refs, unsigned ref_count)
{
    Bits *bits = &building->bits[at];
    Cell *cell = (Cell *)building->cells.data + at;
    if (bits->failed || ref_count > MAX_REFS)
        return false;
    if (bits->count & 7)
        bits->bytes[bits->count >> 3] |= (uint8_t)(0x80 >> (bits->count & 7));
    *cell = (Cell){.data = bits->bytes,
                   .bits = (uint16_t)bits->count,
                   .d1 = (uint8_t)ref_count,
                   .d2 = (uint8_t)(bits->count / 8 + (bits->count + 7) / 8)};
    for (unsigned i = 0; i < ref_count; i++)
        cell->refs[i] = refs[i];
    return true;
}

/* Parse the bag of a body or StateInit into `content`. Rows have the generic form without index,
   CRC and hashes; all others are left to the reference. */
static Status read_content(Building *building, const Span *span)
{
    const uint8_t *data = building->rows->bytes.data + span->at;
    Tree *content = &building->content;
    if (span->size < 6 || load_be(data, 4) != MAGIC || data[4] & ~7u)
        return NOT_MINE;
    Status status = tree_parse(content, data, span->size);
    if (status == DONE && (content->root || content->memory.stored.size))
        return NOT_MINE;
    return status;
}

/* Write `Either X ^X`: the bits of the root of a bag and its references, or a reference to it; and
   append its cells to the others. */
static Status place_content(Building *building, const Span *span, bool in_ref, Bits *bits,
                            uint32_t *refs, unsigned *ref_count)
{
    const Tree *content = &building->content;
    Status status = read_content(building, span);
    if (status != DONE)
        return status;
    const Cell *root = &content->cells[0];
    uint32_t base = count_cells(building), first = in_ref ? 0 : 1;
    unsigned more = in_ref ? 1 : cell_ref_count(root);
    if (*ref_count + more > MAX_REFS || content->count > MAX_CELLS - base)
        return NOT_MINE;
    bits_uint(bits, in_ref, 1);
    if (in_ref) {
        refs[(*ref_count)++] = base;
    } else {
        Slice slice = slice_open(content, 0);
        if (slice.failed) /* exotic */
            return NOT_MINE;
        put_rest(bits, &slice);
        for (unsigned i = 0; i < more; i++)
            refs[(*ref_count)++] = base + root->refs[i] - first;
    }
    size_t count = content->count - first;
    if (!heap_append(&building->cells, content->cells + first, count * sizeof(Cell)))
        return NO_MEMORY;
    Cell *cells = (Cell *)building->cells.data + base;
    for (size_t i = 0; i < count; i++)
        for (unsigned ref = 0; ref < cell_ref_count(&cells[i]); ref++)
            cells[i].refs[ref] += base - first;
    return DONE;
}

/* Read an external address from the recipe; false if it has none. */
static bool read_external(Building *building, Slice *to)
{
    unsigned bits = (unsigned)slice_uint(&building->recipe, 16), spare = (8 - (bits & 7)) & 7;
    if (bits > MAX_BITS || slice_uint(&building->recipe, spare))
        return false;
    *to = building->recipe;
    slice_skip(&building->recipe, bits);
    to->end = building->recipe.pos;
    return !building->recipe.failed;
}

static Status make_message(Building *building, size_t index)
{
    const Row_messages *row = &building->rows->messages[index];
    uint8_t flags = building->rows->bytes.data[building->rows->row.recipe.at + index];
    uint32_t at = building->first_message + (uint32_t)index, refs[MAX_REFS];
    unsigned ref_count = 0;
    Bits *bits = open_cell(building, at);
    bool is_external = flags & EXTERNAL_ADDRESS;
    Slice external;
    Status status = DONE;
    if ((is_external && !read_external(building, &external)) || !row->has_body)
        return NOT_MINE;
    put_info(bits, row, is_external ? &external : NULL);
    bits_uint(bits, row->has_init_state, 1);
    if (row->has_init_state)
        status = place_content(building, &row->init_state, flags & INIT_IN_REF, bits, refs,
                               &ref_count);
    if (status == DONE)
        status = place_content(building, &row->body, flags & BODY_IN_REF, bits, refs, &ref_count);
    if (status == DONE && !end_cell(building, at, refs, ref_count))
        status = NOT_MINE;
    return status;
}

/* Build the nodes of the map of outgoing messages; here for the keys `first` to `last`. */
static bool build_node(Building *building, uint32_t first, uint32_t last, unsigned left)
{
    uint32_t at = building->next_node++, refs[2];
    unsigned rest = put_out_node(open_cell(building, at), first, last, left);
    if (!rest) {
        size_t outs = (size_t)building->rows->row.outmsg_cnt;
        refs[0] = building->first_message + (uint32_t)(building->rows->count - outs) + first;
        return end_cell(building, at, refs, 1);
    }
    uint32_t fork = out_map_fork(last, rest);
    refs[0] = building->next_node;
    if (!build_node(building, first, fork - 1, rest - 1))
        return false;
    refs[1] = building->next_node;
    return build_node(building, fork, last, rest - 1) && end_cell(building, at, refs, 2);
}

/* Build the transaction's own cells, except for the messages. */
static bool build_own(Building *building)
{
    const Row_transactions *row = &building->rows->row;
    bool has_out = row->outmsg_cnt > 0;
    bool has_in = building->rows->count > (size_t)row->outmsg_cnt;
    const uint32_t root_refs[] = {HOLDER, UPDATE, DESCRIPTION};
    const uint32_t below[] = {FIRST_BELOW, FIRST_BELOW + 1};
    const uint32_t holder_refs[] = {has_in ? building->first_message : building->next_node,
                                    building->next_node};
    uint32_t next = FIRST_BELOW;
    put_root(open_cell(building, ROOT), row);
    put_holder(open_cell(building, HOLDER), has_in, has_out);
    put_update(open_cell(building, UPDATE), row);
    put_description(open_cell(building, DESCRIPTION), row);
    if (has_run_cell(row)) {
        put_run(open_cell(building, next), row);
        if (!end_cell(building, next++, NULL, 0))
            return false;
    }
    if (has_action_cell(row)) {
        put_action(open_cell(building, next), row);
        if (!end_cell(building, next++, NULL, 0))
            return false;
    }
    if (has_out && !build_node(building, 0, (uint32_t)row->outmsg_cnt - 1, OUT_KEY_BITS))
        return false;
    return end_cell(building, ROOT, root_refs, 3) &&
           end_cell(building, HOLDER, holder_refs, (unsigned)has_in + has_out) &&
           end_cell(building, UPDATE, NULL, 0) &&
           end_cell(building, DESCRIPTION, below, next - FIRST_BELOW);
}

/* Build all cells; the root is the first. */
static Status build_cells(Building *building)
{
    const InputRows *rows = building->rows;
    const Row_transactions *row = &rows->row;
    size_t outs = (size_t)row->outmsg_cnt, nodes = outs ? 2 * outs - 1 : 0;
    if (!row->has_outmsg_cnt || row->outmsg_cnt < 0 || rows->count < outs ||
        rows->count > outs + 1 || !row->has_recipe || row->recipe.size < rows->count ||
        row->recipe.size > UINT16_MAX / 8 || !row->has_hash)
        return NOT_MINE;
    building->next_node =
        FIRST_BELOW + (uint32_t)has_run_cell(row) + (uint32_t)has_action_cell(row);
    building->first_message = building->next_node + (uint32_t)nodes;
    building->recipe = (Slice){.data = rows->bytes.data + row->recipe.at,
                               .pos = (uint16_t)(8 * rows->count),
                               .end = (uint16_t)(8 * row->recipe.size)};
    size_t count = building->first_message + rows->count;
    Cell *cells = heap_renew(&building->cells, count, sizeof *cells);
    building->bits = malloc(count * sizeof *building->bits);
    if (!cells || !building->bits)
        return NO_MEMORY;
    building->cells.size = count * sizeof *cells;
    Status status = build_own(building) ? DONE : NOT_MINE;
    for (size_t i = 0; i < rows->count && status == DONE; i++)
        status = make_message(building, i);
    return status == DONE && slice_bits_left(&building->recipe) ? NOT_MINE : status;
}

Status rebuild_bag(const InputRows *rows, const Sha256 *sha, uint64_t seed, Heap *to)
{
    Building building = {.rows = rows};
    Tree tree = {0};
    Writer writer = {.seed = seed};
    const uint32_t root = ROOT;
    Status status = build_cells(&building);
    if (status == DONE)
        status = tree_take(&tree, (const Cell *)building.cells.data, count_cells(&building));
    if (status == DONE)
        status = tree_digest(&tree, sha, &root, 1);
    if (status == DONE && !hash_equal(tree_hash(&tree, root, MAX_LEVEL), &rows->row.hash))
        status = NOT_MINE;
    if (status == DONE)
        status = writer_open(&writer, &tree);
    if (status == DONE)
        status = write_bag(&writer, &tree, root, to);
    writer_free(&writer);
    tree_free(&tree);
    tree_free(&building.content);
    heap_free(&building.cells);
    free(building.bits);
    return status;
}
