"""The base class of codecs, the work that decoding a body may take, and codecs of single values.

Decoded values are JSON text in the shape of TON Center's: integers as decimal text, bit strings as
uppercase hexadecimal text, constructors as objects with ``@type``.
TL-B: block.tlb, MsgAddressExt and MsgAddressInt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import msgspec

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.errors import BocError, BodyError, BodyLimit

if TYPE_CHECKING:
    from tonlake.ingest.derive.body.record import Record

Value: TypeAlias = "bool | str | Object | list[Value]"
"""What the JSON of a decoded value holds."""
Object: TypeAlias = "dict[str, Value]"
Layouts: TypeAlias = "Mapping[int, Sequence[Record]]"
"""Layouts by opcode, in the order in which they are tried."""

NOTHING, SOMETHING = "nothing_from_maybe", "something_from_maybe"
"""``@type`` of ``Maybe``."""

MAX_LEVELS = 48
"""Maximum depth of cells that are decoded, including nested payloads; a list is one level."""
MAX_PAYLOADS = 10
"""Maximum nesting of payloads that are decoded, as in TON Center."""
MAX_ITEMS = 256
"""Maximum length of a list or dictionary, such as the actions of a wallet: the TVM allows 255."""
MAX_TEXT = 8 << 20
"""Maximum characters of JSON of referenced cells, counted on every level that includes them: a code
cell in each of 255 messages fits, but a few crafted cells could represent 2^256 keys."""
MAX_VISITS = 2048
"""Maximum cells that layouts read, some of them several times: 255 messages with their payloads."""
_CELL_TRIALS = 4
_SPARE_CELLS = 1024
"""A small body may visit each of its cells a few times, as layouts are tried, plus this number."""
_RAW_SHOWS = 2
_SPARE_BYTES = 4096
_SPARE_CELL_BYTES = 64
"""Raw cells may take a few times the bytes of the body, plus these: each bag has a header."""


class Work:
    """The remaining work that decoding one body may take, and the parts decoded so far.

    ``known`` has the text of cells by how they were read, or why they cannot be read that way;
    ``layouts`` decode payloads by opcode; ``level`` is the depth of the cell that is read,
    ``payloads`` how many more may be nested, ``entries_left`` how many more the dictionary that is
    read may have, ``text_left`` what is left of ``MAX_TEXT``. ``limit`` names the limit that was
    met, if any. ``is_mostly_unread`` tells that a layout was refused because it would leave most of
    a body or payload unread.
    """

    __slots__ = (
        "_cells",
        "_raw_bytes",
        "entries_left",
        "is_mostly_unread",
        "known",
        "layouts",
        "level",
        "limit",
        "payloads",
        "text_left",
    )

    def __init__(self, tree: CellTree, layouts: Layouts) -> None:
        """Create the full allowance for a body in its own tree."""
        self._cells = min(_CELL_TRIALS * tree.count + _SPARE_CELLS, MAX_VISITS)
        self._raw_bytes = _RAW_SHOWS * sum(map(len, tree.cells)) + _SPARE_BYTES
        self._raw_bytes += _SPARE_CELL_BYTES * tree.count
        self.entries_left = MAX_ITEMS
        self.text_left = MAX_TEXT
        self.known: dict[object, str | BocError | BodyError] = {}
        self.layouts = layouts
        self.level = 0
        self.limit: str | None = None
        self.is_mostly_unread = False
        self.payloads = MAX_PAYLOADS

    def refuse(self, limit: str) -> NoReturn:
        """Raise BodyLimit, and note the limit."""
        self.limit = limit
        raise BodyLimit(limit)

    def visit(self) -> None:
        """Count one more cell; raise BodyLimit above the limit."""
        self._cells -= 1
        if self._cells < 0:
            self.refuse("the layouts visit the cells of the body too often")

    def spend(self, raw_bytes: int) -> None:
        """Count a cell that is shown raw; raise BodyLimit above the limit."""
        self._raw_bytes -= raw_bytes
        if self._raw_bytes < 0:
            self.refuse("the body shows its cells too often")


class Codec(ABC):
    """Reads one type from a slice.

    ``size`` is the number of bits and references that every value has; None if it varies.
    ``zeros`` is the number of zero bits, without references, that are a value, and its JSON.
    """

    size: tuple[int, int] | None = None
    zeros: tuple[int, str] | None = None

    @abstractmethod
    def decode(self, source: CellSlice, work: Work) -> str:
        """Read one value as JSON; raise BocError or BodyError if the bits do not encode one."""


class Sized(Codec):
    """A number of a fixed width, written by the %-format ``form`` after ``convert``, if any."""

    form = '"%d"'
    convert: Callable[[int], str | int] | None = None

    def __init__(self, bits: int) -> None:
        """Set the width in bits."""
        self.bits = bits
        self.size = bits, 0

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the number."""
        del work
        number = source.load_uint(self.bits)
        return self.form % (self.convert(number) if self.convert else number)


class Unsigned(Sized):
    """``uintN``: decimal text."""


class Bounded(Unsigned):
    """``(#<= n)`` and ``(#< n)``: a number of as many bits as its maximum has."""

    def __init__(self, most: int) -> None:
        """Set the maximum."""
        super().__init__(most.bit_length())
        self._most = most
        self.convert = self._check

    def _check(self, number: int) -> int:
        if number > self._most:
            raise BodyError(f"{number} where at most {self._most} is allowed")
        return number


class Signed(Sized):
    """``intN``: decimal text."""

    def __init__(self, bits: int) -> None:
        """Set the width in bits."""
        super().__init__(bits)
        half = 1 << bits >> 1
        self.convert = lambda number: (number ^ half) - half


class Flag(Sized):
    """``Bool``: true or false."""

    form = "%s"
    convert = ("false", "true").__getitem__

    def __init__(self) -> None:
        """Create the codec of one bit."""
        super().__init__(1)


class Bits(Sized):
    """``bitsN``: uppercase hexadecimal text."""

    def __init__(self, bits: int) -> None:
        """Set the width in bits."""
        super().__init__(bits)
        if bits % 4 or not bits:
            self.form = '"%s"'
            self.convert = lambda number: show_bits(number, bits)
        else:
            self.form = f'"%0{bits // 4}X"'


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


class VarUnsigned(Codec):
    """``VarUInteger n``: a length in bytes, smaller than n, followed by that number of bytes."""

    def __init__(self, limit: int) -> None:
        """Set n."""
        self._length_bits = (limit - 1).bit_length()
        self._mask = (1 << self._length_bits) - 1
        self.limit = limit
        self.zeros = self._length_bits, '{"@type":"var_uint","len":"0","value":"0"}'

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object of ``len`` and ``value``, both decimal text."""
        del work
        left = source.bits_left - self._length_bits
        count = source.value >> left & self._mask if left >= 0 else 0
        if count >= self.limit:
            raise BodyError(f"number of {count} bytes where fewer than {self.limit} are allowed")
        left -= count * 8
        if left < 0:
            source.skip(source.bits_left - left)  # refused
        source.bits_left = left
        number = source.value >> left & (1 << count * 8) - 1
        return f'{{"@type":"var_uint","len":"{count}","value":"{number}"}}'


class Unreadable(Codec):
    """A type without values: its constructor names an opcode but decodes no body."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Raise BodyError."""
        del work
        raise BodyError(f"cell {source.cell}: this layout only names its opcode")


NONE, EXTERN, STD, VAR = "addr_none", "addr_extern", "addr_std", "addr_var"
_CONSTRUCTORS = (NONE, EXTERN, STD, VAR)
_MAX_ANYCAST_BITS = 30
_WORKCHAIN_BITS, _HASH_BITS, _LENGTH_BITS = 8, 256, 9
_HASH_MASK = (1 << _HASH_BITS) - 1
_NO_ANYCAST = f'{{"@type":"{NOTHING}"}}'
_PLAIN_BITS = 3 + _WORKCHAIN_BITS + _HASH_BITS
"""The width of addr_std without anycast, the most frequent address, which begins with 100."""
_NO_ADDRESS = f'{{"@type":"{NONE}"}}'
_PLAIN_START = f'{{"@type":"{STD}","anycast":{_NO_ANYCAST},"workchain_id":"'


class Address(Codec):
    """A message address of any kind, as the object of its constructor."""

    zeros = 2, _NO_ADDRESS

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object whose ``@type`` is the constructor."""
        del work
        left = source.bits_left - _PLAIN_BITS
        if left >= 0:
            number = source.value >> left
            if number >> _HASH_BITS + _WORKCHAIN_BITS & 7 == 0b100:  # noqa: PLR2004 - the tag
                source.bits_left = left
                workchain = (number >> _HASH_BITS & 255 ^ 128) - 128
                return f'{_PLAIN_START}{workchain}","address":"{number & _HASH_MASK:064X}"}}'
        return _load_rare_address(source)


def _load_rare_address(source: CellSlice) -> str:
    name = _CONSTRUCTORS[source.load_uint(2)]
    if name == NONE:
        return _NO_ADDRESS
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


_TEXT_LENGTH_BITS = 8


def load_snake(source: CellSlice, work: Work) -> bytes:
    """Read the bytes to the end of the cell, then of its only child, and so on.

    Raises:
        BodyError: a partial byte, more than one child, or too many cells.
    """
    parts = []
    while True:
        if source.bits_left % 8 or source.refs_left > 1:
            raise BodyError(f"cell {source.cell} is not part of a snake text")
        parts.append(source.load_bytes(source.bits_left // 8))
        if not source.refs_left:
            return b"".join(parts)
        source = source.tree.slice(source.load_ref())
        work.visit()


def read_words(source: CellSlice, work: Work | None = None) -> bytes:
    """Return the bytes of a comment: the whole bytes of the cell, of its first child, and so on.

    Wallets show such a text, whatever other references and bits the cells have.

    Raises:
        BocError: a cell is exotic.
        BodyLimit: more cells than ``work`` allows.
    """
    parts = []
    while True:
        parts.append(source.load_bytes(source.bits_left // 8))
        if not source.refs_left:
            return b"".join(parts)
        source = source.tree.slice(source.load_ref())
        if work is not None:
            work.visit()


class CommentText(Codec):
    """UTF-8 text of a comment, which takes the whole cell."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read text; raise BodyError for invalid UTF-8."""
        text = read_utf8(read_words(source, work))
        source.end()
        return write_text(text)


class SnakeText(Codec):
    """UTF-8 text to the end of the cell and of the chain of its children."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read text; raise BodyError for invalid UTF-8."""
        return write_text(read_utf8(load_snake(source, work)))


class SnakeBytes(Codec):
    """Bytes to the end of the cell and of the chain of its children."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read uppercase hexadecimal text."""
        return f'"{load_snake(source, work).hex().upper()}"'


class ShortText(Codec):
    """Text of at most 255 bytes after its length. TL-B: telemint_text of the telemint contracts."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object of ``len`` and ``text``."""
        del work
        count = source.load_uint(_TEXT_LENGTH_BITS)
        text = read_utf8(source.load_bytes(count))
        return f'{{"@type":"telemint_text","len":"{count}","text":{write_text(text)}}}'


class ChunkedText(Codec):
    """Text in chunks: the number of chunks, then length, bytes and the next chunk in a child.

    TL-B: ``text$_ chunks:(## 8) rest:(TextChunks chunks) = Text`` of TEP-64 and TEP-81.
    """

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object of ``chunks`` and ``text``."""
        chunks = source.load_uint(_TEXT_LENGTH_BITS)
        data = bytearray()
        part = source
        for left in range(chunks, 0, -1):
            data += part.load_bytes(part.load_uint(_TEXT_LENGTH_BITS))
            if left > 1:
                part = part.tree.slice(part.load_ref())
                work.visit()
        if part is not source and (part.bits_left or part.refs_left):
            raise BodyError("the last chunk of a text is followed by data")
        text = write_text(read_utf8(data))
        return f'{{"@type":"text","chunks":"{chunks}","text":{text}}}'


def read_utf8(data: bytes | bytearray) -> str:
    """Return bytes as text; raise BodyError for invalid UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyError("invalid UTF-8 text") from error


def write_text(text: str) -> str:
    """Return text as JSON."""
    return msgspec.json.encode(text).decode()
