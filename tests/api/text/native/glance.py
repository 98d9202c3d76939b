"""Python reference of ``peek_opcode``: the opcode of a body from the head of its bag.

serialized_boc#b5ee9c72 has_idx:Bool has_crc32c:Bool has_cache_bits:Bool flags:uint2 size:uint3
off_bytes:uint8 cells roots absent (size bytes each) tot_cells_size (off_bytes) root_list (size) ...
"""

_MAGIC = bytes.fromhex("b5ee9c72")
_HAS_INDEX, _SIZE = 0x80, 0x07
_SIMPLE_CELL = 4
"""d1 of an ordinary cell is the number of its references: 0 to 4."""

_OPCODE_BYTES = 4
_SIGNED_SIZE = 2 * (64 + _OPCODE_BYTES)
"""d2 of a cell that holds a signature and an opcode."""


def peek_opcode(boc: bytes) -> int | None:
    """Return the first 32 bits of the root; None for every form of bag that needs a full parse."""
    if len(boc) < 6 or boc[:4] != _MAGIC or boc[4] & _HAS_INDEX:
        return None
    size = boc[4] & _SIZE
    if int.from_bytes(boc[6 + size : 6 + 2 * size], "big") != 1:
        return None
    root_list = 6 + 3 * size + boc[5]
    start = root_list + size
    opcode = boc[start + 2 : start + 2 + _OPCODE_BYTES]
    if any(boc[root_list:start]) or len(opcode) < _OPCODE_BYTES:
        return None
    if boc[start] > _SIMPLE_CELL or not 2 * _OPCODE_BYTES <= boc[start + 1] < _SIGNED_SIZE:
        return None
    return int.from_bytes(opcode, "big")
