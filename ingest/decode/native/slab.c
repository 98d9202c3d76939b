#include "slab.h"

Pool *pool_open(void)
{
    Pool *pool = calloc(1, sizeof *pool);
    if (pool)
        atomic_store(&pool->users, 1);
    return pool;
}

void pool_leave(Pool *pool)
{
    if (!pool || atomic_fetch_sub(&pool->users, 1) != 1)
        return;
    for (unsigned i = 0; i < SPARE_SLABS; i++)
        free(atomic_load(&pool->spare[i]));
    free(pool);
}

static Slab *make_slab(size_t size)
{
    size_t extra = sizeof(Slab) + SLAB_ALIGN;
    if (size > SIZE_MAX / 4)
        return NULL;
    Slab *slab = malloc(size + extra);
    if (!slab)
        return NULL;
    if (size >= LARGE_BYTES)
        advise_large(slab, size + extra);
    slab->capacity = size;
    slab->data = (uint8_t *)slab_round((uintptr_t)(slab + 1));
    return slab;
}

/* Take a spare slab that fits and is not much too large. */
static Slab *find_spare(Pool *pool, size_t size)
{
    for (unsigned i = 0; i < SPARE_SLABS; i++) {
        Slab *slab = atomic_exchange(&pool->spare[i], NULL), *none = NULL;
        if (!slab)
            continue;
        if (slab->capacity >= size && slab->capacity / 4 <= size) {
            atomic_fetch_sub(&pool->kept, slab->capacity);
            return slab;
        }
        if (!atomic_compare_exchange_strong(&pool->spare[i], &none, slab)) {
            atomic_fetch_sub(&pool->kept, slab->capacity);
            free(slab);
        }
    }
    return NULL;
}

Slab *slab_take(Pool *pool, size_t size)
{
    Slab *slab = size < MIN_SPARE_BYTES ? NULL : find_spare(pool, size);
    if (!slab)
        slab = make_slab(size < MIN_SPARE_BYTES ? size : size + size / 4);
    if (!slab)
        return NULL;
    atomic_fetch_add(&pool->users, 1);
    slab->pool = pool;
    atomic_store(&slab->users, 1);
    return slab;
}

/* Store a slab for later use; false if there is no space for it. */
static bool keep_spare(Pool *pool, Slab *slab)
{
    if (slab->capacity < MIN_SPARE_BYTES)
        return false;
    if (atomic_fetch_add(&pool->kept, slab->capacity) + slab->capacity <= SPARE_BYTES)
        for (unsigned i = 0; i < SPARE_SLABS; i++) {
            Slab *none = NULL;
            if (atomic_compare_exchange_strong(&pool->spare[i], &none, slab))
                return true;
        }
    atomic_fetch_sub(&pool->kept, slab->capacity);
    return false;
}

void slab_drop(Slab *slab)
{
    if (atomic_fetch_sub(&slab->users, 1) != 1)
        return;
    Pool *pool = slab->pool;
    if (!keep_spare(pool, slab))
        free(slab);
    pool_leave(pool);
}
