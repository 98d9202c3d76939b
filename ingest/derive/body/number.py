"""Codecs of integers and truth values, and of what never is a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.codec import Codec, Value, Work
from tonlake.ingest.derive.body.program import Op
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.body.program import Program


class Unsigned(Codec):
    """``uintN``."""

    op = Op.UINT

    def __init__(self, bits: int) -> None:
        """Make the codec of one width."""
        self.bits = bits

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read decimal text."""
        del work
        return str(source.load_uint(self.bits))

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the width."""
        del program
        return (self.bits,)


class Signed(Codec):
    """``intN``."""

    op = Op.INT

    def __init__(self, bits: int) -> None:
        """Make the codec of one width."""
        self.bits = bits

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read decimal text."""
        del work
        return str(source.load_int(self.bits))

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the width."""
        del program
        return (self.bits,)


class Flag(Codec):
    """``Bool``."""

    op = Op.BOOL

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read true or false."""
        del work
        return source.load_bit()


class VarUnsigned(Codec):
    """``VarUInteger n``: a length in bytes, smaller than n, and that many bytes."""

    op = Op.VAR_UINT

    def __init__(self, limit: int) -> None:
        """Make the codec of one n."""
        self._length_bits = (limit - 1).bit_length()
        self.limit = limit

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read an object of ``len`` and ``value``, both decimal text."""
        del work
        count = source.load_uint(self._length_bits)
        if count >= self.limit:
            raise BodyError(f"number of {count} bytes where fewer than {self.limit} are allowed")
        number = source.load_uint(count * 8)
        return {"@type": "var_uint", "len": str(count), "value": str(number)}

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the limit, and the width of the length."""
        del program
        return (self.limit, self._length_bits)


class Unreadable(Codec):
    """A type that nothing is: its constructor gives an opcode its name and decodes no body."""

    op = Op.UNREADABLE

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Refuse every body."""
        del work
        raise BodyError(f"cell {source.cell}: this layout only names its opcode")
