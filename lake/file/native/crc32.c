/* CRC-32, eight bytes at a time; building the tables takes microseconds. */
#include "crc32.h"

void crc32_prepare(CrcTables *tables)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        tables->of[0][byte] = crc;
    }
    for (int step = 1; step < CRC_STEP; step++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = tables->of[step - 1][byte];
            tables->of[step][byte] = before >> 8 ^ tables->of[0][before & 0xff];
        }
}

uint32_t crc32_of(const CrcTables *tables, const uint8_t *data, size_t size)
{
    uint32_t crc = ~0u;
    for (; size >= CRC_STEP; data += CRC_STEP, size -= CRC_STEP) {
        uint32_t low = crc ^ (data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                              (uint32_t)data[3] << 24);
        crc = tables->of[7][low & 0xff] ^ tables->of[6][low >> 8 & 0xff] ^
              tables->of[5][low >> 16 & 0xff] ^ tables->of[4][low >> 24] ^
              tables->of[3][data[4]] ^ tables->of[2][data[5]] ^ tables->of[1][data[6]] ^
              tables->of[0][data[7]];
    }
    for (; size; data++, size--)
        crc = crc >> 8 ^ tables->of[0][(crc ^ *data) & 0xff];
    return ~crc;
}
