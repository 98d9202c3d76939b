"""Bit strings, in the notation of TON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.codec import Codec, Value, Work
from tonlake.ingest.derive.body.program import Op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.body.program import Program


class Bits(Codec):
    """``bitsN``."""

    op = Op.BITS

    def __init__(self, bits: int) -> None:
        """Make the codec of one length."""
        self.bits = bits

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read upper-case hexadecimal text."""
        del work
        return load_bits(source, self.bits)

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the width."""
        del program
        return (self.bits,)


def load_bits(source: CellSlice, bits: int) -> str:
    """Read bits as upper-case hexadecimal text.

    Bits that end inside a digit get a one and zeroes behind them, and ``_`` behind the last
    digit, as TON writes bit strings.
    """
    return show_bits(source.load_uint(bits), bits)


def show_bits(number: int, bits: int) -> str:
    """Return a number of ``bits`` bits in the notation of ``load_bits``."""
    digits, rest = divmod(bits, 4)
    if rest:
        return f"{(number << 1 | 1) << (3 - rest):0{digits + 1}X}_"
    return f"{number:0{digits}X}" if digits else ""
