"""Parses bags of cells, the serialized form of trees of cells. TL-B: serialized_boc.

All three forms are read: b5ee9c72 (generic, with optional index, cache bits and CRC), 68ff65f3
(index) and acc3a728 (index and CRC). The cells are read and checked in one pass without the index:
it only serves to find single cells, and pytoniq-core writes sizes in place of offsets.
"""

from tonlake.ingest.decode.cell.envelope import BagHeader, read_envelope
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.errors import BocError

_MAX_REFS = 4
_REFS_OF_ABSENT = 7
_HASHES_BIT = 0x10
_TAG_MASK = 0x7F
_HASH_AND_DEPTH_BYTES = 34
# Bytes of d1, d2 and data, by d2.
_CELL_BYTES = [2 + (d2 + 1 >> 1) for d2 in range(256)]
# Values of d1 of cells with stored hashes, and invalid ones.
_UNUSUAL = frozenset(d1 for d1 in range(256) if d1 & _HASHES_BIT or d1 & 7 > _MAX_REFS)


def parse_boc(data: bytes, *, check_crc: bool = True) -> CellTree:
    """Parse a bag of cells; every cell is checked, even if no root reaches it.

    ``check_crc=False`` skips the CRC, for callers that verify a hash of ``data`` anyway. BocError
    has the offset.
    """
    tree = CellTree()
    tree.data = data
    if not tree.take_parsed(check_crc=check_crc):
        envelope = read_envelope(data, check_crc=check_crc)
        tree.roots = envelope.roots
        _read_cells(data, envelope, tree)
        tree.measure()
    return tree


def _read_cells(data: bytes, envelope: BagHeader, tree: CellTree) -> None:
    try:
        at = _read_to_end(data, envelope, tree)
    except IndexError as error:
        raise BocError("cells end too early", envelope.end) from error
    if at > envelope.end or len(tree.cells) < envelope.cell_count:
        raise BocError("cells end too early", at)
    if len(tree.cells) > envelope.cell_count:
        raise BocError("bytes left over after the last cell", at)


def _read_to_end(data: bytes, envelope: BagHeader, tree: CellTree) -> int:
    """Append cells up to the end of the bag; return the offset after the last one."""
    width, sizes, unusual = envelope.ref_bytes, _CELL_BYTES, _UNUSUAL
    keep_cell, keep_links, from_bytes = tree.cells.append, tree.links.append, int.from_bytes
    at, limit = envelope.first, envelope.end
    while at < limit:
        d1, d2 = data[at], data[at + 1]
        end = at + sizes[d2]
        if d1 in unusual:
            hashes = _skip_hashes(data, at, tree)
            end += hashes
            keep_cell(bytes((d1 & ~_HASHES_BIT, d2)) + data[at + hashes + 2 : end])
        else:
            keep_cell(data[at:end])
        if d2 & 1 and not data[end - 1] & _TAG_MASK:
            raise BocError("data of a cell without its end tag, or one byte too long", end - 1)
        at = end + (d1 & 7) * width
        keep_links(tuple([from_bytes(data[ref : ref + width]) for ref in range(end, at, width)]))
    return at


def _skip_hashes(data: bytes, at: int, tree: CellTree) -> int:
    """Store the hashes in the cell that begins at ``at``; return their size in bytes.

    With bit 16 of d1, popcount(level mask) + 1 hashes, then as many depths, precede the data.
    """
    d1 = data[at]
    ref_count = d1 & 7
    if ref_count == _REFS_OF_ABSENT and d1 & _HASHES_BIT:
        raise BocError("absent cell: only complete bags of cells are supported", at)
    if ref_count > _MAX_REFS:
        raise BocError(f"cell with {ref_count} references", at)
    size = ((d1 >> 5).bit_count() + 1) * _HASH_AND_DEPTH_BYTES
    tree.stored_hashes[len(tree.cells)] = data[at + 2 : at + 2 + size]
    return size
