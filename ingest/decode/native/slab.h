/* Memory of finished tables. It comes back when Arrow lets go of a table, on any thread, and serves
   the next one: to get fresh pages from the system costs as much as to decode what fills them. */
#ifndef TONLAKE_SLAB_H
#define TONLAKE_SLAB_H

#include <stdatomic.h>

#include "heap.h"

#define SPARE_SLABS 16
/* Slabs at least this large are kept, as long as they take at most SPARE_BYTES together. */
#define MIN_SPARE_BYTES (64u << 10)
#define SPARE_BYTES ((size_t)256 << 20)
/* Where buffers begin: Arrow recommends 64 bytes. */
#define SLAB_ALIGN 64

typedef struct Pool Pool;

/* One piece of memory, with those who use it counted; it belongs to the pool it came from. */
typedef struct {
    Pool *pool;
    atomic_size_t users;
    size_t capacity;
    uint8_t *data; /* aligned */
} Slab;

struct Pool {
    atomic_size_t users; /* the module, and every slab that is out */
    atomic_size_t kept;  /* bytes */
    _Atomic(Slab *) spare[SPARE_SLABS];
};

Pool *pool_open(void);

/* Leave a pool; the last one frees it with all that is spare. */
void pool_leave(Pool *pool);

/* Take a slab of at least `size` bytes, with one user; NULL without memory. */
Slab *slab_take(Pool *pool, size_t size);

/* Stop using a slab; the last one gives it back. */
void slab_drop(Slab *slab);

static inline size_t slab_round(size_t size)
{
    return (size + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN;
}

#endif
