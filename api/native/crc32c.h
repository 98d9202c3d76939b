/* CRC-32C, the checksum of bags of cells. */
#ifndef TONLAKE_API_CRC32C_H
#define TONLAKE_API_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const uint8_t *data, size_t size);

#endif
