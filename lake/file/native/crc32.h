/* CRC-32 as in gzip: the checksum of Parquet pages. */
#ifndef TONLAKE_PARQUET_CRC32_H
#define TONLAKE_PARQUET_CRC32_H

#include <stddef.h>
#include <stdint.h>

enum { CRC_STEP = 8 };

/* The CRC of each byte value followed by that many zero bytes. */
typedef struct {
    uint32_t of[CRC_STEP][256];
} CrcTables;

void crc32_prepare(CrcTables *tables);
uint32_t crc32_of(const CrcTables *tables, const uint8_t *data, size_t size);

#endif
