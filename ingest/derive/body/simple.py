"""Codecs of values inside a cell: integers, booleans, bit strings, addresses.

TL-B: block.tlb, MsgAddressExt and MsgAddressInt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.codec import NOTHING, SOMETHING, Codec, Work
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice


class Sized(Codec):
    """A codec of values of a fixed width."""

    def __init__(self, bits: int) -> None:
        """Set the width in bits."""
        self.bits = bits
        self.size = bits, 0


class Unsigned(Sized):
    """``uintN``."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read decimal text."""
        del work
        return f'"{source.load_uint(self.bits)}"'


class Bounded(Unsigned):
    """``(#<= n)`` and ``(#< n)``: a number of as many bits as its maximum has."""

    def __init__(self, most: int) -> None:
        """Set the maximum."""
        super().__init__(most.bit_length())
        self._most = most

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read decimal text; raise BodyError for a larger number."""
        del work
        number = source.load_uint(self.bits)
        if number > self._most:
            raise BodyError(f"{number} where at most {self._most} is allowed")
        return f'"{number}"'


class Signed(Sized):
    """``intN``."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read decimal text."""
        del work
        return f'"{source.load_int(self.bits)}"'


class Flag(Codec):
    """``Bool``."""

    size = 1, 0

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read true or false."""
        del work
        return "true" if source.load_bit() else "false"


class VarUnsigned(Codec):
    """``VarUInteger n``: a length in bytes, smaller than n, followed by that number of bytes."""

    def __init__(self, limit: int) -> None:
        """Set n."""
        self._length_bits = (limit - 1).bit_length()
        self.limit = limit

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object of ``len`` and ``value``, both decimal text."""
        del work
        count = source.load_uint(self._length_bits)
        if count >= self.limit:
            raise BodyError(f"number of {count} bytes where fewer than {self.limit} are allowed")
        return f'{{"@type":"var_uint","len":"{count}","value":"{source.load_uint(count * 8)}"}}'


class Unreadable(Codec):
    """A type without values: its constructor names an opcode but decodes no body."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Raise BodyError."""
        del work
        raise BodyError(f"cell {source.cell}: this layout only names its opcode")


class Bits(Sized):
    """``bitsN``."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read uppercase hexadecimal text."""
        del work
        return f'"{load_bits(source, self.bits)}"'


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
_WORKCHAIN_BITS, _HASH_BITS, _LENGTH_BITS = 8, 256, 9
_HASH_MASK = (1 << _HASH_BITS) - 1
_NO_ANYCAST = f'{{"@type":"{NOTHING}"}}'
_PLAIN_TAG, _PLAIN_TAG_BITS, _PLAIN_BITS = 0b100, 3, 3 + _WORKCHAIN_BITS + _HASH_BITS
"""The start and the width of addr_std without anycast, the most frequent address."""
_PLAIN_START = f'{{"@type":"{STD}","anycast":{_NO_ANYCAST},"workchain_id":"'


class Address(Codec):
    """A message address of any kind, as the object of its constructor."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object whose ``@type`` is the constructor."""
        del work
        if source.bits_left >= _PLAIN_BITS and source.peek_uint(_PLAIN_TAG_BITS) == _PLAIN_TAG:
            number = source.load_uint(_PLAIN_BITS)
            workchain = (number >> _HASH_BITS & 255 ^ 128) - 128
            return f'{_PLAIN_START}{workchain}","address":"{number & _HASH_MASK:064X}"}}'
        name = _CONSTRUCTORS[source.load_uint(2)]
        if name == NONE:
            return '{"@type":"addr_none"}'
        if name == EXTERN:
            bits = source.load_uint(_LENGTH_BITS)
            text = load_bits(source, bits)
            return f'{{"@type":"addr_extern","len":"{bits}","external_address":"{text}"}}'
        anycast = _load_anycast(source) if source.load_bit() else _NO_ANYCAST
        length = ""
        bits, workchain_bits = _HASH_BITS, _WORKCHAIN_BITS
        if name == VAR:
            bits, workchain_bits = source.load_uint(_LENGTH_BITS), 32
            length = f'"addr_len":"{bits}",'
        workchain = source.load_int(workchain_bits)
        return (
            f'{{"@type":"{name}","anycast":{anycast},{length}"workchain_id":"{workchain}",'
            f'"address":"{load_bits(source, bits)}"}}'
        )


def _load_anycast(source: CellSlice) -> str:
    """Read ``Anycast`` as something of Maybe: 1 to 30 bits that rewrite the start of an address."""
    depth = source.load_uint(5)
    if not 0 < depth <= _MAX_ANYCAST_BITS:
        raise BodyError(f"anycast of {depth} bits")
    prefix = load_bits(source, depth)
    return (
        f'{{"@type":"{SOMETHING}","value":{{"@type":"anycast_info","depth":"{depth}",'
        f'"rewrite_pfx":"{prefix}"}}}}'
    )
