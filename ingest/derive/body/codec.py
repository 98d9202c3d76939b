"""The base class of codecs, the work that decoding a body may take, and codecs of single values.

Decoded values are JSON text in the shape of TON Center's: integers as decimal text, bit strings as
uppercase hexadecimal text, constructors as objects with ``@type``.
TL-B: block.tlb, MsgAddressExt and MsgAddressInt.
"""

from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tonlake.ingest.decode.cell.build import Rest, serialize_rests
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.body.function import (
    LEVEL_SHIFT,
    MAX_LEVELS,
    Function,
    Read,
    ReadCell,
    escape,
)
from tonlake.ingest.derive.body.number import Numbers
from tonlake.ingest.errors import BodyError, BodyLimit

if TYPE_CHECKING:
    from tonlake.ingest.derive.body.record import Record

Value: TypeAlias = "bool | str | Object | list[Value]"
"""What the JSON of a decoded value holds."""
Object: TypeAlias = "dict[str, Value]"
Layouts: TypeAlias = "Mapping[int, Sequence[Record]]"
"""Layouts by opcode, in the order in which they are tried."""

NOTHING, SOMETHING = "nothing_from_maybe", "something_from_maybe"
"""``@type`` of ``Maybe``."""

MAX_PAYLOADS = 10
"""Maximum nesting of payloads that are decoded, as in TON Center."""
MAX_ITEMS = 256
"""Maximum length of a list or dictionary, such as the actions of a wallet: the TVM allows 255."""
MAX_TEXT = 4 << 20
"""Maximum characters of JSON of cells that are shown again: a code cell in each of 255 messages
fits, but a few crafted cells could represent 2^256 keys."""
MAX_VISITS = 1536
"""Maximum cells that layouts read, some of them several times: six for each of 255 messages."""
MAX_RAW_CELLS = 1792
"""Maximum cells of raw bags, without single ones: seven in each of 255 messages."""
_CELL_TRIALS = 4
_SPARE_CELLS = 1024
"""A small body may visit each of its cells a few times, as layouts are tried, plus this number."""
_MARK = "\0"
"""Stands around the number of a long text; JSON has no such character."""


class Work:
    """The remaining work that decoding one body may take, and the parts decoded so far.

    ``known`` has the text of cells by how they were read, or why they cannot be read that way;
    ``layouts`` decode payloads by opcode; ``place`` is the depth of the cell that is read, and in
    its last ``LEVEL_SHIFT`` bits how many more payloads may be nested; ``entries_left`` is how many
    more the dictionary that is read may have, ``visits_left``, ``raw_left`` and ``text_left`` what
    is left of other limits; ``numbers`` are those of the record that is read, ``uses`` how many
    types that depend on numbers it is nested in. ``limit`` names the limit that was met, if any.
    ``is_mostly_unread`` means that a layout was refused because it would leave most of a body or
    payload unread.
    """

    def __init__(self, tree: CellTree, layouts: Layouts) -> None:
        self._aside: list[tuple[list[str], int]] = []
        self._rests: dict[int, Rest] = {}
        self._tree = tree
        self.visits_left = min(_CELL_TRIALS * tree.count + _SPARE_CELLS, MAX_VISITS)
        self.entries_left = MAX_ITEMS
        self.raw_left, self.text_left = MAX_RAW_CELLS, MAX_TEXT
        self.known: dict[int | tuple[int, ...], str | Exception] = {}
        self.numbers: Numbers = {}
        self.uses = 0
        self.layouts = layouts
        self.place = MAX_PAYLOADS
        self.limit: str | None = None
        self.is_mostly_unread = False

    def refuse(self, limit: str) -> NoReturn:
        """Raise BodyLimit, and note the limit."""
        self.limit = limit
        raise BodyLimit(limit)

    def set_aside(self, text: str) -> str:
        """Return a mark that stands for a long text, so that no level copies it."""
        parts = _split(text)
        self._aside.append((parts, self._measure(parts)))
        return f"{_MARK}{len(self._aside) - 1}{_MARK}"

    def show_later(self, rest: Rest, size: int) -> str:
        """Return a mark that stands for a bag of about ``size`` bytes; all are written at once."""
        self._rests[len(self._aside)] = rest
        self._aside.append(([], size * 4 // 3))
        return f"{_MARK}{len(self._aside) - 1}{_MARK}"

    def _measure(self, parts: list[str]) -> int:
        below = [self._aside[int(place)][1] for place in parts[1::2]]
        return sum(map(len, parts[::2])) + sum(below)

    def assemble(self, text: str) -> str:
        """Return a text with all that its marks stand for.

        Raises BocError if a bag shows wrong hashes, its own or of Merkle cells.
        """
        if self._rests:
            bags = serialize_rests(self._tree, list(self._rests.values()))
            for place, bag in zip(self._rests, bags, strict=True):
                self._aside[place] = [show_bag(bag)], 0
            self._rests = {}
        texts: list[str] = []
        self._add(_split(text), texts)
        return "".join(texts)

    def _add(self, parts: list[str], texts: list[str]) -> None:
        texts.append(parts[0])
        for place, after in zip(parts[1::2], parts[2::2], strict=True):
            inner = self._aside[int(place)][0]
            if len(inner) == 1:
                texts += inner[0], after
                continue
            self._add(inner, texts)
            texts.append(after)

    def repeat(self, text: str) -> str:
        """Count the text of a cell that is shown again; raise BodyLimit above the limit."""
        self.text_left -= self._measure(_split(text)) if _MARK in text else len(text)
        if self.text_left < 0:
            self.refuse(f"shared cells repeat more than {MAX_TEXT:,} characters")
        return text

    def count_raw(self, cells: int) -> None:
        """Count the cells of a raw bag; raise BodyLimit above the limit."""
        self.raw_left -= cells
        if self.raw_left < 0:
            self.refuse(f"the body shows more than {MAX_RAW_CELLS:,} cells raw")

    def recall(self, text: str | Exception) -> str:
        """Return the text of a cell that was read, or raise the error met then."""
        if isinstance(text, str):
            return self.repeat(text)
        raise copy(text)  # a traceback would keep all rows of the commit until the collector runs

    def visit(self) -> None:
        """Count one more cell; raise BodyLimit above the limit."""
        self.visits_left -= 1
        if self.visits_left < 0:
            self.refuse_visit()

    def refuse_visit(self) -> NoReturn:
        """Raise BodyLimit: the cell is too deep, or too many were read."""
        if self.place >= MAX_LEVELS << LEVEL_SHIFT:
            self.refuse(f"the body has more than {MAX_LEVELS} levels")
        self.refuse("the layouts visit the cells of the body too often")


def _split(text: str) -> list[str]:
    """Split at the marks, as ``str.split`` does, which compares character by character."""
    parts, start = [], 0
    while (at := text.find(_MARK, start)) >= 0:
        parts.append(text[start:at])
        start = at + 1
    return [*parts, text[start:]]


def show_bag(bag: bytes) -> str:
    """Return a bag as JSON: text in base64."""
    return f'"{b2a_base64(bag, newline=False).decode()}"'


class Codec:
    """Reads one type from a slice, by ``load`` or by what ``write`` adds to a function.

    ``size`` is the number of bits and references that every value has; None if it varies.
    """

    size: tuple[int, int] | None = None

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read one value as JSON; raise BocError or BodyError if the bits do not encode one."""
        return work.assemble(self.read(source, work))

    def load(self, source: CellSlice, work: Work) -> str:
        """Read one value as JSON, with marks (``Work.set_aside``)."""
        return self.read(source, work)

    def write(self, function: Function) -> str:
        """Add the reading of one value to a function; return its JSON as a part of an f-string."""
        return function.call(self.load)

    def read(self, source: CellSlice, work: Work) -> str:
        """``load``, with fewer calls."""
        tree, cell, value = source.tree, source.cell, source.value
        found = self.read_at(tree, cell, value, source.bits_left, source.ref, work)
        text, source.bits_left, source.ref = found
        return text

    @cached_property
    def read_at(self) -> Callable[..., tuple[str, int, int]]:
        """What reads a value in a tree, a cell, its bits and references left: see ``Function``."""
        function = Function()
        return function.finish(f"f'{self.write(function)}'")

    @cached_property
    def read_cell(self) -> ReadCell:
        """What reads the value that fills a cell, which is compiled on first use."""
        function = Function()
        return function.finish_cell(f"f'{self.write(function)}'")


class Sized(Codec):
    """A number of a fixed width, which is shown as ``form``."""

    form = '"{%s}"'

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.size = bits, 0

    def write(self, function: Function) -> str:
        """Read the number."""
        return self.form % function.number(self.bits)


class Unsigned(Sized):
    """``uintN``: decimal text."""


class Bounded(Unsigned):
    """``(#<= n)`` and ``(#< n)``: a number of as many bits as its maximum has."""

    def __init__(self, most: int) -> None:
        super().__init__(most.bit_length())
        self._most = most

    def write(self, function: Function) -> str:
        """Read the number, and check it."""
        name = function.number(self.bits)
        function.add(f"if {name} > {self._most}:", f" {function.name(self._refuse)}({name})")
        return self.form % name

    def _refuse(self, number: int) -> None:
        raise BodyError(f"{number} where at most {self._most} is allowed")


class Signed(Sized):
    """``intN``: decimal text."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        half = 1 << bits >> 1
        self.form = f'"{{(%s ^ {half}) - {half}}}"'


class Flag(Sized):
    """``Bool``: true or false."""

    form = '{"true" if %s else "false"}'

    def __init__(self) -> None:
        super().__init__(1)


class Bits(Sized):
    """``bitsN``: uppercase hexadecimal text."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        self.form = f'"{{"%%0{bits // 4}X" %% %s}}"'

    def write(self, function: Function) -> str:
        """Read the bits."""
        if self.bits % 4 or not self.bits:
            return f'"{{{function.name(show_bits)}({function.number(self.bits)}, {self.bits})}}"'
        return super().write(function)


def show_bits(number: int, bits: int) -> str:
    """Return a number of ``bits`` bits as uppercase hexadecimal text.

    If the bits end inside a digit, a one and zeroes are appended, and ``_`` after the last digit,
    as in TON's notation of bit strings.
    """
    digits, rest = divmod(bits, 4)
    if rest:
        return f"{(number << 1 | 1) << (3 - rest):0{digits + 1}X}_"
    return f"{number:0{digits}X}" if digits else ""


_BYTE_MASKS = [(1 << 8 * count) - 1 for count in range(32)]


class VarUnsigned(Codec):
    """``VarUInteger n``: a length in bytes, smaller than n, followed by that number of bytes."""

    def __init__(self, limit: int, *, is_signed: bool = False) -> None:
        """Set n; ``is_signed``: of ``VarInteger n``."""
        self._length_bits = (limit - 1).bit_length()
        self.limit, self.is_signed = limit, is_signed

    def write(self, function: Function) -> str:
        """Read an object of ``len`` and ``value``, both decimal text."""
        count, number = function.number(self._length_bits), function.local()
        if self.limit >> self._length_bits == 0:
            refuse = function.name(self._refuse)
            function.add(f"if {count} >= {self.limit}:", f" {refuse}({count})")
        function.add(f"{number} = 0")
        with function.block(f"if {count}:"):
            function.add(f"left -= {count} << 3")
            function.add(f"{number} = value >> left & {function.name(_BYTE_MASKS)}[{count}]")
            if self.is_signed:
                half = f"(1 << ({count} << 3) - 1)"
                function.add(f"{number} = ({number} ^ {half}) - {half}")
        kind = "var_int" if self.is_signed else "var_uint"
        return f'{{{{"@type":"{kind}","len":"{{{count}}}","value":"{{{number}}}"}}}}'

    def _refuse(self, count: int) -> None:
        raise BodyError(f"number of {count} bytes where fewer than {self.limit} are allowed")


NONE, EXTERN, STD, VAR = "addr_none", "addr_extern", "addr_std", "addr_var"
_WORKCHAIN_BITS, _HASH_BITS = 8, 256
_HASH_MASK = (1 << _HASH_BITS) - 1
_NO_ANYCAST = f'{{"@type":"{NOTHING}"}}'
_PLAIN_BITS = 3 + _WORKCHAIN_BITS + _HASH_BITS
"""The width of addr_std without anycast, the most frequent address, which begins with 100."""
_NO_ADDRESS = f'{{"@type":"{NONE}"}}'
_PLAIN_START = f'{{"@type":"{STD}","anycast":{_NO_ANYCAST},"workchain_id":"'


class Address(Codec):
    """A message address of any kind, as the object of its constructor."""

    def __init__(self, read_rare: Read) -> None:
        """Set what reads those that are neither none nor standard without anycast."""
        self._read_rare = read_rare

    def write(self, function: Function) -> str:
        """Read an object whose ``@type`` is the constructor."""
        name = function.local()
        with function.block(f"if left >= {_PLAIN_BITS} and value >> left - 3 & 7 == 0b100:"):
            function.add(f"left -= {_PLAIN_BITS}", "run = value >> left")
            workchain = f"{{(run >> {_HASH_BITS} & 255 ^ 128) - 128}}"
            address = f'"address":"{{"%064X" % (run & {_HASH_MASK})}}"'
            function.add(f"{name} = f'{escape(_PLAIN_START)}{workchain}\",{address}}}}}'")
        with function.block("elif left > 1 and not value >> left - 2 & 3:"):
            function.add("left -= 2", f"{name} = {_NO_ADDRESS!r}")
        with function.block("else:"):
            function.add(f"{name} = f'{function.call(self._read_rare)}'")
        return f"{{{name}}}"


_TEXT_LENGTH_BITS = 8

TEXT_OPCODE, ENCRYPTED_OPCODE = 0x00000000, 0x2167DA4B
"""Opcodes of comments, whose words follow."""


def read_words(source: CellSlice, work: Work | None = None, *, is_snake: bool = False) -> bytes:
    """Return the bytes of a comment: the whole bytes of the cell, of its first child, and so on.

    Wallets show such a text, whatever other references and bits the cells have, unless ``is_snake``
    refuses these. Raises BocError: an exotic cell; BodyError: no snake; BodyLimit.
    """
    parts = []
    while True:
        if is_snake and (source.bits_left % 8 or source.refs_left > 1):
            raise BodyError(f"cell {source.cell} is not part of a snake text")
        parts.append(source.load_bytes(source.bits_left // 8))
        if not source.refs_left:
            return b"".join(parts)
        source = source.tree.slice(source.load_ref())
        if work is not None:
            work.visit()


class CommentText(Codec):
    """UTF-8 text of a comment, which takes the whole cell."""

    def load(self, source: CellSlice, work: Work) -> str:
        """Read text; raise BodyError for invalid UTF-8."""
        text = read_utf8(read_words(source, work))
        source.end()
        return write_text(text)

    def write(self, function: Function) -> str:
        """Read text, most of which fits its cell."""
        name = function.local()
        with function.block("if left & 7 or links:"):
            function.add(f"{name} = f'{function.call(self.load)}'")
        with function.block("else:"):
            data = '(value & (1 << left) - 1).to_bytes(left >> 3, "big")'
            text = f"{function.name(write_text)}({data}.decode())"
            function.add(f"{name}, left = {text}, 0")
        return f"{{{name}}}"


class SnakeText(Codec):
    """UTF-8 text to the end of the cell and of the chain of its children."""

    def load(self, source: CellSlice, work: Work) -> str:
        """Read text; raise BodyError for invalid UTF-8."""
        return write_text(read_utf8(read_words(source, work, is_snake=True)))


class SnakeBytes(Codec):
    """Bytes to the end of the cell and of the chain of its children."""

    def load(self, source: CellSlice, work: Work) -> str:
        """Read uppercase hexadecimal text."""
        return f'"{read_words(source, work, is_snake=True).hex().upper()}"'


class CommentBytes(SnakeBytes):
    """Bytes of an encrypted comment, which take the whole cell."""

    def load(self, source: CellSlice, work: Work) -> str:
        """Read uppercase hexadecimal text."""
        data = read_words(source, work)
        source.end()
        return f'"{data.hex().upper()}"'


class ShortText(Codec):
    """Text of at most 255 bytes after its length. TL-B: telemint_text of the telemint contracts."""

    def load(self, source: CellSlice, work: Work) -> str:
        """Read an object of ``len`` and ``text``."""
        del work
        count = source.load_uint(_TEXT_LENGTH_BITS)
        text = read_utf8(source.load_bytes(count))
        return f'{{"@type":"telemint_text","len":"{count}","text":{write_text(text)}}}'


def read_chunks(source: CellSlice, work: Work | None = None) -> tuple[bytes, int, CellSlice]:
    """Return the bytes of a text in chunks, their number, and the slice after the last one."""
    chunks, data = source.load_uint(_TEXT_LENGTH_BITS), b""
    for chunk in range(chunks):
        if chunk:
            source = source.tree.slice(source.load_ref())
            if work is not None:
                work.visit()
        data += source.load_bytes(source.load_uint(_TEXT_LENGTH_BITS))
    return data, chunks, source


class ChunkedText(Codec):
    """Text in chunks: the number of chunks, then length, bytes and the next chunk in a child.

    TL-B: ``text$_ chunks:(## 8) rest:(TextChunks chunks) = Text`` of TEP-64 and TEP-81.
    """

    def load(self, source: CellSlice, work: Work) -> str:
        """Read an object of ``chunks`` and ``text``."""
        data, chunks, last = read_chunks(source, work)
        if last is not source and (last.bits_left or last.refs_left):
            raise BodyError("the last chunk of a text is followed by data")
        text = write_text(read_utf8(data))
        return f'{{"@type":"text","chunks":"{chunks}","text":{text}}}'


def read_utf8(data: bytes | bytearray) -> str:
    """Return bytes as text; raise BodyError for invalid UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyError("invalid UTF-8 text") from error


write_text: Callable[[str], str] = encode_basestring
