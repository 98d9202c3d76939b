/* CRC-32 as of gzip, which Parquet checks its pages with. */
#ifndef TONLAKE_PARQUET_CRC32_H
#define TONLAKE_PARQUET_CRC32_H

#include <stddef.h>
#include <stdint.h>

enum { CRC_STEP = 8 };

/* What each byte of a step, followed by that number of zeros, comes to. */
typedef struct {
    uint32_t of[CRC_STEP][256];
} CrcTables;

void crc32_prepare(CrcTables *tables);
uint32_t crc32_of(const CrcTables *tables, const uint8_t *data, size_t size);

#endif
