"""CRC-32C (Castagnoli), which a bag of cells may carry in its last four bytes."""

from __future__ import annotations

_POLYNOMIAL = 0x82F63B78


def _make_table() -> list[int]:
    """Return the remainder of every byte value, for the reflected polynomial."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of ``data``; a bag of cells stores it little-endian."""
    value = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF
