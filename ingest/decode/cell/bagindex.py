"""Reads single cells of a bag through its index, which is fast for a few cells of a large block.

The index has the end of each cell. pytoniq-core writes sizes there, and a bag may have no index:
then BocError is raised, and the whole bag has to be parsed (tonlake.ingest.decode.cell.boc).
"""

from __future__ import annotations

from typing import NamedTuple

from tonlake.ingest.decode.cell.envelope import CACHE_FLAG, GENERIC, INDEX_FLAG, read_envelope
from tonlake.ingest.errors import BocError

_HASHES_BIT, _EXOTIC_BIT = 0x10, 0x08
_HASH_AND_DEPTH_BYTES = 34
_OFFSET_BYTES_AT = 5


class IndexedCell(NamedTuple):
    """A cell of a bag: its data with the completion tag, if any, and its children."""

    is_exotic: bool
    d2: int
    data: bytes
    refs: tuple[int, ...]

    def bits(self) -> tuple[int, int]:
        """Return the data as an integer, and its number of bits."""
        value = int.from_bytes(self.data, "big")
        if not self.d2 & 1:
            return value, len(self.data) * 8
        tag = (value & -value).bit_length()
        return value >> tag, len(self.data) * 8 - tag


class BagIndex:
    """The cells of a generic bag with an index."""

    def __init__(self, data: bytes) -> None:
        """Read only the header of the bag."""
        envelope = read_envelope(data, check_crc=False)
        if data[:4] != GENERIC or not data[4] & INDEX_FLAG:
            raise BocError("the bag has no index", 4)
        self.root = envelope.roots[0]
        self._data, self._envelope = data, envelope
        self._width = data[_OFFSET_BYTES_AT]
        self._shift = 1 if data[4] & CACHE_FLAG else 0
        self._start = envelope.first - envelope.cell_count * self._width

    def read(self, cell: int) -> IndexedCell:
        """Return the cell with this number."""
        first, ref_bytes = self._envelope.first, self._envelope.ref_bytes
        start, end = first + self._offset(cell - 1), first + self._offset(cell)
        if not first <= start < start + 2 <= end <= self._envelope.end:
            raise BocError(f"the index has no valid offset for cell {cell}", self._start)
        d1, d2 = self._data[start], self._data[start + 1]
        if d1 & _HASHES_BIT:
            start += ((d1 >> 5).bit_count() + 1) * _HASH_AND_DEPTH_BYTES
        data_end = start + 2 + (d2 + 1 >> 1)
        if data_end + (d1 & 7) * ref_bytes != end:
            raise BocError(f"the index does not fit cell {cell}", start)
        refs = tuple(
            int.from_bytes(self._data[at : at + ref_bytes], "big")
            for at in range(data_end, end, ref_bytes)
        )
        return IndexedCell(bool(d1 & _EXOTIC_BIT), d2, self._data[start + 2 : data_end], refs)

    def _offset(self, cell: int) -> int:
        """Return the end of a cell relative to the first one's start; 0 for cell -1."""
        if cell < 0:
            return 0
        if cell >= self._envelope.cell_count:
            raise BocError(f"cell {cell} of {self._envelope.cell_count}", self._start)
        at = self._start + cell * self._width
        return int.from_bytes(self._data[at : at + self._width], "big") >> self._shift
