/* Growing arrays of bytes and numbers; after a failed allocation nothing is appended any more. */
#ifndef TONLAKE_GROWING_H
#define TONLAKE_GROWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t *data;
    size_t size, room;
    bool failed;
} Growing;

/* Reserve `more` bytes and return their start, or NULL without memory; the size does not change. */
static inline uint8_t *grow(Growing *growing, size_t more)
{
    if (more <= growing->room - growing->size && growing->data)
        return growing->data + growing->size;
    size_t room = growing->room + growing->room / 2 + more + 64;
    uint8_t *data = growing->failed ? NULL : realloc(growing->data, room);
    if (!data) {
        growing->failed = true;
        return NULL;
    }
    growing->data = data;
    growing->room = room;
    return data + growing->size;
}

static inline void append(Growing *growing, const void *data, size_t size)
{
    uint8_t *to = grow(growing, size);
    if (to && size)
        memcpy(to, data, size);
    if (to)
        growing->size += size;
}

static inline void append_word(Growing *growing, uint64_t word)
{
    append(growing, &word, sizeof word);
}

/* Number of words appended. */
static inline size_t count_words(const Growing *growing)
{
    return growing->size / sizeof(uint64_t);
}

/* The word at a place; read it as signed if a signed one was appended. */
static inline uint64_t word_at(const Growing *growing, size_t at)
{
    uint64_t word;
    memcpy(&word, growing->data + at * sizeof word, sizeof word);
    return word;
}

static inline void free_growing(Growing *growing)
{
    free(growing->data);
    *growing = (Growing){0};
}

#endif
