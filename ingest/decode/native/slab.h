/* Memory of finished tables. It is returned when Arrow releases a table, on any thread, and reused
   for the next one: getting new pages from the system costs as much as decoding their contents. */
#ifndef TONLAKE_SLAB_H
#define TONLAKE_SLAB_H

#include <stdatomic.h>

#include "heap.h"

#define SPARE_SLABS 16
/* Slabs of at least this size are kept, up to SPARE_BYTES in all. */
#define MIN_SPARE_BYTES (64u << 10)
#define SPARE_BYTES ((size_t)256 << 20)
/* Alignment of buffers: Arrow recommends 64 bytes. */
#define SLAB_ALIGN 64

typedef struct Pool Pool;

/* A reference-counted piece of memory; it belongs to the pool it came from. */
typedef struct {
    Pool *pool;
    atomic_size_t users;
    size_t capacity;
    uint8_t *data; /* aligned */
} Slab;

struct Pool {
    atomic_size_t users; /* the module, and every slab in use */
    atomic_size_t kept;  /* bytes */
    _Atomic(Slab *) spare[SPARE_SLABS];
};

Pool *pool_open(void);

/* Leave a pool; the last user frees it with all spare slabs. */
void pool_leave(Pool *pool);

/* Return a slab of at least `size` bytes with one user; NULL if there is no memory. */
Slab *slab_take(Pool *pool, size_t size);

/* Release a slab; the last user returns it to the pool. */
void slab_drop(Slab *slab);

static inline size_t slab_round(size_t size)
{
    return (size + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN;
}

#endif
