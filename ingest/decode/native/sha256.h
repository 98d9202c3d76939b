/* SHA-256 (FIPS 180-4), by the processor's SHA instructions if it has them. */
#ifndef TONLAKE_SHA256_H
#define TONLAKE_SHA256_H

#include "heap.h"

/* Find out what the processor has; until then, and on others, plain C does the work. */
void sha256_open(void);

void sha256(const uint8_t *data, size_t size, Hash *to);

#endif
