"""Codecs of values inside a cell: integers, booleans, bit strings, addresses.

TL-B: block.tlb, MsgAddressExt and MsgAddressInt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.codec import NOTHING, SOMETHING, Codec, Object, Value, Work
from tonlake.ingest.derive.body.program import Op
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.body.program import Program


class Sized(Codec):
    """A codec of values of a fixed width."""

    def __init__(self, bits: int) -> None:
        """Set the width in bits."""
        self.bits = bits

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the width."""
        del program
        return (self.bits,)


class Unsigned(Sized):
    """``uintN``."""

    op = Op.UINT

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read decimal text."""
        del work
        return str(source.load_uint(self.bits))


class Signed(Sized):
    """``intN``."""

    op = Op.INT

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read decimal text."""
        del work
        return str(source.load_int(self.bits))


class Flag(Codec):
    """``Bool``."""

    op = Op.BOOL

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read true or false."""
        del work
        return source.load_bit()


class VarUnsigned(Codec):
    """``VarUInteger n``: a length in bytes, smaller than n, followed by that number of bytes."""

    op = Op.VAR_UINT

    def __init__(self, limit: int) -> None:
        """Set n."""
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
    """A type without values: its constructor names an opcode but decodes no body."""

    op = Op.UNREADABLE

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Raise BodyError."""
        del work
        raise BodyError(f"cell {source.cell}: this layout only names its opcode")


class Bits(Sized):
    """``bitsN``."""

    op = Op.BITS

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read uppercase hexadecimal text."""
        del work
        return load_bits(source, self.bits)


def load_bits(source: CellSlice, bits: int) -> str:
    """Read bits as uppercase hexadecimal text.

    If the bits end inside a digit, a one and zeroes are appended, and ``_`` after the last digit,
    as in TON's notation of bit strings.
    """
    return show_bits(source.load_uint(bits), bits)


def show_bits(number: int, bits: int) -> str:
    """Return a number of ``bits`` bits in the notation of ``load_bits``."""
    digits, rest = divmod(bits, 4)
    if rest:
        return f"{(number << 1 | 1) << (3 - rest):0{digits + 1}X}_"
    return f"{number:0{digits}X}" if digits else ""


NONE, EXTERN, STD, VAR = "addr_none", "addr_extern", "addr_std", "addr_var"
_CONSTRUCTORS = (NONE, EXTERN, STD, VAR)
_MAX_ANYCAST_BITS = 30


class Address(Codec):
    """A message address of any kind, as the object of its constructor."""

    op = Op.ADDRESS

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read an object whose ``@type`` is the constructor."""
        del work
        name = _CONSTRUCTORS[source.load_uint(2)]
        value: Object = {"@type": name}
        if name == EXTERN:
            bits = source.load_uint(9)
            value |= {"len": str(bits), "external_address": load_bits(source, bits)}
        if name not in {STD, VAR}:
            return value
        value["anycast"] = _load_anycast(source)
        bits = 256
        if name == VAR:
            bits = source.load_uint(9)
            value["addr_len"] = str(bits)
        value["workchain_id"] = str(source.load_int(32 if name == VAR else 8))
        value["address"] = load_bits(source, bits)
        return value


def _load_anycast(source: CellSlice) -> Value:
    """Read ``Maybe Anycast``: 1 to 30 bits that rewrite the start of the address."""
    if not source.load_bit():
        return {"@type": NOTHING}
    depth = source.load_uint(5)
    if not 0 < depth <= _MAX_ANYCAST_BITS:
        raise BodyError(f"anycast of {depth} bits")
    info: Object = {"@type": "anycast_info", "depth": str(depth)}
    info["rewrite_pfx"] = load_bits(source, depth)
    return {"@type": SOMETHING, "value": info}
