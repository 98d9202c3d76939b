/* Bottom-up merge sort; parts already in order are not touched. */
#include "sort.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 12 };

typedef struct {
    Compare compare;
    const void *context;
} Order;

static inline bool is_after(const Keyed *first, const Keyed *second, const Order *order)
{
    if (first->key != second->key)
        return first->key > second->key;
    return order->compare && order->compare(order->context, first->at, second->at) > 0;
}

static void insert_each(Keyed *items, size_t count, const Order *order)
{
    for (size_t at = 1; at < count; at++) {
        Keyed item = items[at];
        size_t to = at;
        for (; to && is_after(&items[to - 1], &item, order); to--)
            items[to] = items[to - 1];
        items[to] = item;
    }
}

/* Merge two sorted neighbours; `spare` has room for the first. */
static void merge(Keyed *items, size_t middle, size_t count, Keyed *spare, const Order *order)
{
    if (!is_after(&items[middle - 1], &items[middle], order))
        return;
    memcpy(spare, items, middle * sizeof *items);
    size_t left = 0, right = middle, to = 0;
    while (left < middle && right < count)
        items[to++] = is_after(&spare[left], &items[right], order) ? items[right++] : spare[left++];
    memcpy(items + to, spare + left, (middle - left) * sizeof *items);
}

bool sort_keyed(Keyed *items, size_t count, Compare compare, const void *context)
{
    const Order order = {compare, context};
    for (size_t start = 0; start < count; start += FEW)
        insert_each(items + start, count - start < FEW ? count - start : FEW, &order);
    if (count <= FEW)
        return true;
    Keyed *spare = malloc(count * sizeof *spare);
    if (!spare)
        return false;
    for (size_t width = FEW; width < count; width *= 2)
        for (size_t start = 0; start + width < count; start += 2 * width) {
            size_t rest = count - start;
            merge(items + start, width, rest < 2 * width ? rest : 2 * width, spare, &order);
        }
    free(spare);
    return true;
}
