"""Bit strings, in the notation of TON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.body.codec import Codec, Value, Work, expect_text
from ingest.errors import BodyError

if TYPE_CHECKING:
    from ingest.cell.build import CellBuilder
    from ingest.cell.slice import CellSlice


class Bits(Codec):
    """``bitsN``."""

    def __init__(self, bits: int) -> None:
        """Make the codec of one length."""
        self._bits = bits

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read upper-case hexadecimal text."""
        del work
        return load_bits(source, self._bits)

    def encode(self, value: Value, target: CellBuilder) -> None:
        """Store hexadecimal text."""
        store_bits(value, self._bits, target)


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


def store_bits(value: Value, bits: int, target: CellBuilder) -> None:
    """Store what ``load_bits`` gives."""
    text = expect_text(value)
    digits = text.removesuffix("_")
    if not set(digits) <= set("0123456789ABCDEF"):
        raise BodyError(f"{text!r} are no bits")
    spare = -bits % 4
    number = int(digits or "0", 16) >> spare
    if number >> bits or text != show_bits(number, bits):
        raise BodyError(f"{text!r} are no {bits} bits")
    target.store_uint(number, bits)
