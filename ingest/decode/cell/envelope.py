"""Reads the header of a bag of cells. TL-B: serialized_boc*.

Every size is compared with the number of bytes before anything is allocated for it.
"""

from typing import NamedTuple

from tonlake.ingest.errors import BocError
from tonlake.lake.native import load_extension

NATIVE, _reason = load_extension("tonlake.ingest.decode._core")
"""The C extension, which declines rare or damaged bags; None if it was not built."""


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of ``data``; a bag of cells stores it little-endian."""
    if NATIVE is not None:
        found: int = NATIVE.crc32c(data)
        return found
    # Loading the package takes longer than most bags.
    from pytoniq_core.crypto.crc import crc32c as compute  # noqa: PLC0415

    return int.from_bytes(compute(data), "little")


MAX_ROOTS = 16384
"""Maximum number of roots that the node accepts (``BagOfCells::default_max_roots``)."""

GENERIC = bytes.fromhex("b5ee9c72")
INDEXED = bytes.fromhex("68ff65f3")
INDEXED_CRC = bytes.fromhex("acc3a728")

INDEX_FLAG = 0x80
CRC_FLAG = 0x40
CACHE_FLAG = 0x20
_UNKNOWN_FLAGS = 0x18
_FLAGS_OF_MAGIC = {GENERIC: 0, INDEXED: INDEX_FLAG, INDEXED_CRC: INDEX_FLAG | CRC_FLAG}

_MAX_REF_BYTES = 4
_MAX_OFFSET_BYTES = 8
_CRC_BYTES = 4
_FIXED_BYTES = 6


class BagHeader(NamedTuple):
    """The header of a bag; its cells are from ``first`` to ``end``."""

    cell_count: int
    roots: list[int]
    ref_bytes: int
    first: int
    end: int


def read_envelope(data: bytes, *, check_crc: bool) -> BagHeader:
    """Read and check everything around the cells; raise BocError if it is invalid."""
    if data[:4] not in _FLAGS_OF_MAGIC:
        raise BocError(f"no bag of cells: it begins with {data[:4].hex() or 'nothing'}", 0)
    if len(data) < _FIXED_BYTES:
        raise BocError("bag of cells ends inside its head", len(data))
    flags = data[4] | _FLAGS_OF_MAGIC[data[:4]]
    ref_bytes = flags & 7
    offset_bytes = data[5]
    if data[:4] != GENERIC and data[4] & ~7:
        raise BocError(f"reference size {data[4]}", 4)
    if flags & _UNKNOWN_FLAGS or (flags & CACHE_FLAG and not flags & INDEX_FLAG):
        raise BocError(f"invalid flags {flags & ~7:#x}", 4)
    if not 0 < ref_bytes <= _MAX_REF_BYTES or not 0 < offset_bytes <= _MAX_OFFSET_BYTES:
        raise BocError(f"references of {ref_bytes} bytes, offsets of {offset_bytes}", 4)
    envelope = _read_sizes(data, flags, ref_bytes, offset_bytes)
    if flags & CRC_FLAG and check_crc:
        stored = int.from_bytes(data[envelope.end :], "little")
        if crc32c(data[: envelope.end]) != stored:
            raise BocError("CRC-32C is wrong", envelope.end)
    return envelope


def _read_sizes(data: bytes, flags: int, ref_bytes: int, offset_bytes: int) -> BagHeader:
    """Read counts, roots and index, and check that they account for every byte."""
    sizes_end = _FIXED_BYTES + 3 * ref_bytes + offset_bytes
    if len(data) < sizes_end:
        raise BocError("bag of cells ends inside its head", len(data))
    numbers = [
        int.from_bytes(data[at : at + ref_bytes], "big")
        for at in range(_FIXED_BYTES, sizes_end - offset_bytes, ref_bytes)
    ]
    cell_count, root_count, absent_count = numbers
    cell_bytes = int.from_bytes(data[sizes_end - offset_bytes : sizes_end], "big")
    generic = data[:4] == GENERIC
    if absent_count:
        text = f"{absent_count} absent cells: only complete bags are supported"
        raise BocError(text, _FIXED_BYTES)
    if not 0 < root_count <= MAX_ROOTS or (root_count != 1 and not generic):
        text = f"{root_count} roots: at least 1 and at most {MAX_ROOTS}"
        raise BocError(text, _FIXED_BYTES)
    if not cell_count:
        raise BocError("no cells", _FIXED_BYTES)
    roots_end = sizes_end + (root_count * ref_bytes if generic else 0)
    first = roots_end + (cell_count * offset_bytes if flags & INDEX_FLAG else 0)
    end = first + cell_bytes
    total_bytes = end + (_CRC_BYTES if flags & CRC_FLAG else 0)
    # A cell has two descriptor bytes, and all but the roots are referred to at least once.
    least = cell_count * (2 + ref_bytes) - root_count * ref_bytes
    if total_bytes != len(data) or cell_bytes < least:
        raise BocError(
            f"head claims {cell_count} cells in {cell_bytes} bytes, {total_bytes} bytes in all, "
            f"but there are {len(data)}",
            _FIXED_BYTES,
        )
    starts = range(sizes_end, roots_end, ref_bytes)
    roots = [int.from_bytes(data[at : at + ref_bytes], "big") for at in starts] or [0]
    if max(roots) >= cell_count:
        raise BocError(f"root {max(roots)} of {cell_count} cells", sizes_end)
    return BagHeader(cell_count, roots, ref_bytes, first, end)
