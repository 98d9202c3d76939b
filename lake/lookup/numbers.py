"""Whole numbers of a run, packed: each takes as many bits as the widest of them needs.

Layout, little-endian: the least number (8 bytes, signed), how many there are (8), the bits of each
(1), how many low bits were cut off each before (1), 6 zero bytes; then what each is above the
least, one after the other, the least significant bit first; then 8 zero bytes, so that each can be
read as a part of one word. Widths of 58 to 63 bits would not fit into a word with the bits before
them, and are 64.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from lake.lookup.native import NATIVE

if TYPE_CHECKING:
    from array import array

    Words = array[int] | memoryview

_HEAD = struct.Struct("<qQBB6x")
_PADDING = bytes(8)
_WIDEST, _WORD = 57, 64
_TOGETHER = 64
"""So many numbers end at a byte, whatever their width."""

_MOST = 1 << 32


def pack_numbers(values: Words, cut_bits: int = 0) -> bytes:
    """Return signed 64-bit numbers packed.

    Args:
        values: Items of code ``q``.
        cut_bits: Low bits that they had before, for the reader to cut off what it looks for.
    """
    if NATIVE is not None:
        packed: bytes = NATIVE.pack_numbers(values, cut_bits)
        return packed
    least = min(values, default=0)
    bits = (max(values, default=0) - least).bit_length()
    bits = bits if bits <= _WIDEST else _WORD
    out = bytearray(_HEAD.pack(least, len(values), bits, cut_bits))
    for start in range(0, len(values), _TOGETHER):
        word = 0
        for value in reversed(values[start : start + _TOGETHER]):
            word = word << bits | value - least
        count = min(_TOGETHER, len(values) - start)
        out += word.to_bytes((count * bits + 7) // 8, "little")
    return bytes(out + _PADDING)


def open_numbers(data: memoryview) -> Any:  # noqa: ANN401 - here or in the extension
    """Return packed numbers as a sequence with ``find``.

    Raises:
        ValueError: they are damaged.
    """
    return Numbers(data) if NATIVE is None else NATIVE.Numbers(data)


class Numbers(Sequence[int]):
    """Packed numbers, read in Python: the reference of the extension, and what stands in for it."""

    def __init__(self, data: memoryview) -> None:
        """Take the bytes of packed numbers; they stay in ``data``."""
        try:
            self._least, self._count, self._bits, self.cut_bits = _HEAD.unpack_from(data)
        except struct.error as error:
            raise ValueError("packed numbers end too early") from error
        room = (len(data) - _HEAD.size - len(_PADDING)) * 8
        is_width = self._bits <= _WIDEST or self._bits == _WORD
        if not is_width or self._count > _MOST or self._count * self._bits > room or room < 0:
            raise ValueError("packed numbers are damaged")
        if self.cut_bits >= _WORD:
            raise ValueError("packed numbers are damaged")
        self.data = data
        self._mask = (1 << self._bits) - 1

    def __len__(self) -> int:
        """Return how many there are."""
        return int(self._count)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> list[int]: ...
    def __getitem__(self, at: int | slice) -> int | list[int]:
        """Return a number, or a list of those in a slice."""
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError("a place is outside of its array")
        byte, shift = divmod(place * self._bits, 8)
        word = int.from_bytes(self.data[_HEAD.size + byte :][:8], "little")
        number: int = self._least + (word >> shift & self._mask)
        return number

    def find(self, wanted: int) -> int:
        """Return the first place of a number among sorted ones, or -1; its low bits are cut off."""
        wanted >>= self.cut_bits
        at = bisect_left(self, wanted)
        return at if at < len(self) and self[at] == wanted else -1
