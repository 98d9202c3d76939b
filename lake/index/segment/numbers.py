"""Whole numbers of a run, packed: each takes as many bits as the widest of them needs.

Layout, little-endian: the least number (8 bytes, signed), how many there are (8), the bits of each
(1), how many low bits were cut off each before (1), 6 zero bytes; then what each is above the
least, one after the other, the least significant bit first; then 8 zero bytes, so that each can be
read as a part of one word. Widths of 58 to 63 bits would not fit into a word with the bits before
them, and are 64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.index.segment.native import NATIVE

if TYPE_CHECKING:
    from array import array

    Words = array[int] | memoryview


def pack_numbers(values: Words, cut_bits: int = 0) -> bytes:
    """Return signed 64-bit numbers packed.

    Args:
        values: Items of code ``q``.
        cut_bits: Low bits that they had before, for the reader to cut off what it looks for.
    """
    packed: bytes = NATIVE.pack_numbers(values, cut_bits)
    return packed


def open_numbers(data: memoryview) -> Any:  # noqa: ANN401 - of the extension
    """Return packed numbers as a sequence with ``find``.

    Raises:
        ValueError: they are damaged.
    """
    return NATIVE.Numbers(data)
