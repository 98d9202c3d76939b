"""Bags of cells: the bytes in which trees of cells are stored. TL-B: serialized_boc.

All three forms are read: b5ee9c72 (generic, with optional index, cache bits and CRC), 68ff65f3
(index) and acc3a728 (index and CRC). The cells are read in one pass, each checked, so the index is
passed over: it only helps to find single cells, and pytoniq-core writes sizes where offsets belong.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from ingest.cell.envelope import MAX_ROOTS, Envelope, read_envelope
from ingest.cell.exotic import LIBRARY, MERKLE_PROOF, MERKLE_UPDATE, ORDINARY, PRUNED
from ingest.cell.tree import CellTree
from ingest.cell.writer import serialize_boc
from ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Callable

    LinkReader = Callable[[bytes, int], tuple[int, ...]]

__all__ = [
    "LIBRARY",
    "MAX_ROOTS",
    "MERKLE_PROOF",
    "MERKLE_UPDATE",
    "ORDINARY",
    "PRUNED",
    "BocError",
    "CellTree",
    "parse_boc",
    "serialize_boc",
]

_MAX_REFS = 4
_REFS_OF_ABSENT = 7
_HASHES_BIT = 0x10
_TAG_MASK = 0x7F
_HASH_AND_DEPTH_BYTES = 34


def parse_boc(data: bytes, *, check_crc: bool = True) -> CellTree:
    """Read a bag of cells; every cell of it is checked, whether a root reaches it or not.

    ``check_crc=False`` leaves the CRC out, for callers that verify a hash of ``data`` anyway.

    Raises:
        BocError: the bytes are no valid bag of cells; names the offset where that shows.
    """
    envelope = read_envelope(data, check_crc=check_crc)
    tree = CellTree()
    tree.data = data
    tree.roots = envelope.roots
    _read_cells(data, envelope, tree)
    tree.measure()
    return tree


def _read_cells(data: bytes, envelope: Envelope, tree: CellTree) -> None:
    """Append every cell to ``tree``."""
    ref_bytes = envelope.ref_bytes
    readers = _LINK_READERS[ref_bytes]
    limit = envelope.end
    cells = tree.cells
    links = tree.links
    at = envelope.first
    for _ in range(envelope.cell_count):
        if at + 2 > limit:
            raise BocError("cells end too early", at)
        d1 = data[at]
        start = at
        ref_count = d1 & 7
        if d1 & _HASHES_BIT or ref_count > _MAX_REFS:
            start += _skip_hashes(data, at, tree)
        d2 = data[at + 1]
        end = start + 2 + (d2 + 1 >> 1)
        at = end + ref_count * ref_bytes
        if at > limit:
            raise BocError("cells end too early", at)
        if d2 & 1 and not data[end - 1] & _TAG_MASK:
            raise BocError("data of a cell without its end tag, or one byte too long", end - 1)
        if d1 & _HASHES_BIT:
            cells.append(bytes((d1 & ~_HASHES_BIT, d2)) + data[start + 2 : end])
        else:
            cells.append(data[start:end])
        links.append(readers[ref_count](data, end) if ref_count else ())
    if at != limit:
        raise BocError("bytes left over after the last cell", at)


def _skip_hashes(data: bytes, at: int, tree: CellTree) -> int:
    """Keep the hashes stored in the cell that begins at ``at``; return how many bytes they take.

    d1 bit 16: popcount(level mask) + 1 hashes, then as many depths, stand before the data.
    """
    d1 = data[at]
    ref_count = d1 & 7
    if ref_count == _REFS_OF_ABSENT and d1 & _HASHES_BIT:
        raise BocError("absent cell: only whole bags of cells are read", at)
    if ref_count > _MAX_REFS:
        raise BocError(f"cell with {ref_count} references", at)
    size = ((d1 >> 5).bit_count() + 1) * _HASH_AND_DEPTH_BYTES
    tree.stored_hashes[len(tree.cells)] = data[at + 2 : at + 2 + size]
    return size


def _make_wide_reader(count: int, width: int) -> LinkReader:
    """Return a reader of ``count`` numbers of ``width`` bytes, for widths that struct lacks."""

    def read(data: bytes, at: int) -> tuple[int, ...]:
        stops = range(at, at + count * width, width)
        return tuple(int.from_bytes(data[stop : stop + width], "big") for stop in stops)

    return read


def _make_readers(width: int) -> list[LinkReader]:
    """Return readers of 0 to 4 references of ``width`` bytes."""
    letter = {1: "B", 2: "H", 4: "I"}.get(width)
    counts = range(_MAX_REFS + 1)
    if letter is None:
        return [_make_wide_reader(count, width) for count in counts]
    return [Struct(f">{count}{letter}").unpack_from for count in counts]


_LINK_READERS = {width: _make_readers(width) for width in range(1, 5)}
