/* Ends of messages whose other end is not in the segment, and external messages that were consumed
   more than once. */
#include "composer.h"

static const End *end_at(const Composer *composer, size_t at)
{
    return (const End *)(const void *)composer->ends.data + at;
}

static int compare_checks(const void *context, uint32_t first, uint32_t second)
{
    uint64_t left = end_at(context, first)->check, right = end_at(context, second)->check;
    return (left > right) - (left < right);
}

static bool is_same(const End *first, const End *second)
{
    return first->hash == second->hash && first->check == second->check;
}

static uint64_t not_negative(int64_t number)
{
    return number < 0 ? 0 : (uint64_t)number;
}

/* The key of an end: its account, or the creation of its message. */
static uint64_t key_of(const End *end, const char *name)
{
    return strcmp(name, "alone_lt") == 0    ? not_negative(end->created)
           : strcmp(name, "alone_now") == 0 ? not_negative(end->created_at)
                                            : end->peer;
}

bool list_alone(const Composer *composer, const char *name, Columns *columns)
{
    int peer_kind = strcmp(name, "alone_to") == 0 ? TO_PEER : FROM_PEER;
    size_t count = composer->ends.size / sizeof(End);
    Keyed *order = malloc((count + 1) * sizeof *order);
    for (uint32_t at = 0; order && at < count; at++)
        order[at] = (Keyed){end_at(composer, at)->hash, at};
    bool sorted = order && sort_keyed(order, count, compare_checks, composer);
    for (size_t start = 0, next; sorted && start < count; start = next) {
        const End *first = end_at(composer, order[start].at);
        bool is_alone = true;
        for (next = start; next < count; next++) {
            const End *end = end_at(composer, order[next].at);
            if (!is_same(first, end))
                break;
            is_alone = is_alone && end->peer_kind == peer_kind;
        }
        for (size_t at = start; is_alone && at < next; at++) {
            const End *end = end_at(composer, order[at].at);
            add_end_row(columns, key_of(end, name), end);
        }
    }
    free(order);
    return sorted;
}

bool list_again(const Composer *composer, const char *name, Columns *columns)
{
    bool by_opcode = strcmp(name, "opcode_again") == 0;
    size_t count = 0, ends = composer->ends.size / sizeof(End);
    Keyed *order = malloc((ends + 1) * sizeof *order);
    for (uint32_t at = 0; order && at < ends; at++)
        if (end_at(composer, at)->created == NO_LT)
            order[count++] = (Keyed){end_at(composer, at)->hash, at};
    bool sorted = order && sort_keyed(order, count, compare_checks, composer);
    for (size_t start = 0, next; sorted && start < count; start = next) {
        const End *first = end_at(composer, order[start].at);
        for (next = start + 1; next < count; next++)
            if (!is_same(first, end_at(composer, order[next].at)))
                break;
        for (size_t at = start; next - start > 1 && at < next; at++) {
            const End *end = end_at(composer, order[at].at);
            if (!by_opcode || end->opcode != NO_OPCODE)
                add_end_row(columns, by_opcode ? end->opcode : end->body, end);
        }
    }
    free(order);
    return sorted;
}
