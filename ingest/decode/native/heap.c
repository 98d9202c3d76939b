/* Advises the system about memory that grows. */
#ifdef __linux__
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#endif

#include "heap.h"

#define PAGE_BYTES 4096u

void advise_large(void *data, size_t size)
{
#ifdef MADV_HUGEPAGE
    /* The result does not matter: memory without huge pages works as well, but is slower to get. */
    uintptr_t start = ((uintptr_t)data + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)data + size) & ~(uintptr_t)(PAGE_BYTES - 1);
    (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
    (void)data;
    (void)size;
#endif
}
