"""Codecs of records (the fields of a constructor), unions (those of a type), payloads.

A payload is the rest of a cell or a referenced one of any kind: it is decoded by the layout of its
opcode, else shown as a bag in base64.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import permutations
from typing import Any, NamedTuple, NoReturn

import msgspec

from tonlake.ingest.decode.cell.build import MAX_BITS, pack_head
from tonlake.ingest.decode.cell.build import Rest as CellRest
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree, read_bits
from tonlake.ingest.decode.cell.writer import serialize_chain, serialize_single
from tonlake.ingest.derive.body.codec import MAX_ITEMS, Codec, Work, show_bag
from tonlake.ingest.derive.body.composite import Reference, check_end
from tonlake.ingest.derive.body.function import (
    LEVEL_SHIFT,
    LONG_TEXT,
    Function,
    ReadCell,
    escape,
    refuse_rest,
)
from tonlake.ingest.derive.body.grammar import Type
from tonlake.ingest.derive.body.number import Numbers, evaluate, match
from tonlake.ingest.errors import BocError, BodyError, BodyLimit

OPCODE_BITS = 32
_OPCODE_MASK = (1 << OPCODE_BITS) - 1
_MAX_CHOICES = 4
"""Maximum constructors of a type that is read in place."""


class RecordField(NamedTuple):
    """A field of a record; with ``switch`` its presence depends on that earlier field.

    ``bit`` is the bit of the switch that is tested; None tests for any set bit.
    """

    name: str
    codec: Codec
    switch: str | None = None
    bit: int | None = None

    def is_present(self, fields: Mapping[str, Any]) -> bool:
        """Return whether the field is present, given the fields before it."""
        if self.switch is None:
            return True
        number = int(fields[self.switch])
        return bool(number if self.bit is None else number >> self.bit & 1)


class Condition(Codec):
    """A condition on numbers, which has no bits; ``=`` may give an unknown one its value."""

    def __init__(self, op: str, left: Type, right: Type) -> None:
        self._op, self._sides = op, (left, right)

    def check(self, numbers: Numbers) -> None:
        """Raise BodyError if the numbers read so far do not fulfil the condition."""
        sides = [(evaluate(each, numbers), each) for each in self._sides]
        (left, _), (right, _) = sides
        if left is not None and right is not None:
            holds = _OPERATORS[self._op](left, right)
        else:
            (_, unknown), (known, _) = sides if left is None else sides[::-1]
            holds = self._op == "=" and known is not None and match(unknown, known, numbers)
        if not holds:
            raise BodyError("a condition on numbers is not fulfilled")


_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


_NUMBER = re.compile(r'"[0-9]{1,78}"|true|false')
"""Matches the JSON of a number that others may depend on."""


class Record(Codec):
    """A sequence of fields; a named constructor is shown as ``@type``."""

    def __init__(
        self,
        name: str,
        parts: Sequence[RecordField],
        *,
        is_whole: bool = False,
        parameters: Sequence[Type] | None = (),
        is_late: bool = False,
    ) -> None:
        """Create the codec of one constructor, without its tag.

        ``is_whole`` means that a body has this layout only if nothing follows it, ``is_late`` that
        types of fields depend on numbers. ``parameters`` are the numbers of the type; a group has
        None, and uses those of the record around it.
        """
        self.parameters: Sequence[Type] = parameters or ()
        self._is_late, self._is_group = is_late, parameters is None
        self.name = name
        self.parts = parts
        self.is_whole = is_whole
        self._open = f'{{"@type":{_encode(name)}' if name else "{"
        self._keys = [
            f"{',' if name or place else ''}{_encode(part.name)}:"
            for place, part in enumerate(parts)
        ]
        self.is_plain = not (
            is_late
            or parameters
            or any(part.switch or isinstance(part.codec, Condition) for part in parts)
        )
        self.least, is_fixed = _add_sizes(parts if self.is_plain else ())
        self.size = self.least if self.is_plain and is_fixed else None
        self._link: int | None = None

    def load(self, source: CellSlice, work: Work, numbers: Numbers | None = None) -> str:
        """Read an object of fields of which some depend on others."""
        found = self.decode_fields(source, work, numbers)
        fields = [key + text for key, text in zip(self._keys, found, strict=True) if text]
        shown = "".join(fields)
        return f"{self._open}{shown if self.name else shown.removeprefix(',')}}}"

    def write(self, function: Function) -> str:
        """Read an object of the fields."""
        if not self.is_plain:
            return function.call(self.load)
        return f"{escape(self._open)}{self._write_fields(function, 0, len(self.parts))}}}}}"

    def _write_fields(self, function: Function, start: int, stop: int) -> str:
        fields = zip(self._keys[start:stop], self.parts[start:stop], strict=True)
        return "".join([escape(key) + part.codec.write(function) for key, part in fields])

    def decode_fields(
        self, source: CellSlice, work: Work, numbers: Numbers | None = None
    ) -> list[str]:
        """Read the fields, each as JSON, or empty text for one that is absent.

        ``numbers`` are those of a use of the type. Cells that fields refer to are read again if
        types depend on numbers, whatever was read of them for others.
        """
        around = work.numbers, work.known
        if numbers is None:
            numbers = work.numbers.copy() if self._is_group else {}
        work.numbers = numbers
        if self._is_late:
            work.known = {}
        texts: list[str] = []
        try:
            for part in self.parts:
                text = ""
                if isinstance(part.codec, Condition):
                    part.codec.check(numbers)
                elif part.is_present(numbers):
                    text = part.codec.read(source, work)
                    if not self.is_plain and _NUMBER.fullmatch(text):
                        numbers[part.name] = int(msgspec.json.decode(text))
                texts.append(text)
        finally:
            work.numbers, work.known = around
        return texts

    def link(self, union: Codec) -> bool:
        """Note the field that refers to a value of the record's own type; return if there is."""
        links = [
            place
            for place, part in enumerate(self.parts)
            if isinstance(part.codec, Reference) and part.codec.inner is union
        ]
        if len(links) == 1 and self.is_plain:
            [self._link] = links
        return self._link is not None

    @cached_property
    def read_item(self) -> Callable[..., Any]:
        """What reads an item of a list without the next one, as ``read_at`` does.

        It returns the JSON before the next item, the cell of that one, and the JSON after it.
        """
        function, place = Function(), self._link
        if place is None:
            return function.finish(f"f'{self.write(function)}'", "None", "''")
        before = escape(self._open) + self._write_fields(function, 0, place)
        following = function.following()
        after = self._write_fields(function, place + 1, len(self.parts))
        return function.finish(
            f"f'{before}{escape(self._keys[place])}'", following, f"f'{after}}}}}'"
        )


def _add_sizes(parts: Sequence[RecordField]) -> tuple[tuple[int, int], bool]:
    known = [part.codec.size for part in parts if part.codec.size is not None]
    bits, refs = sum(bits for bits, _refs in known), sum(refs for _bits, refs in known)
    return (bits, refs), len(known) == len(parts)


def _encode(name: str) -> str:
    return msgspec.json.encode(name).decode()


class TaggedRecord(NamedTuple):
    """A constructor of a union: its tag, the record after it, and the size of both, if fixed."""

    tag: int
    tag_bits: int
    record: Record
    size: tuple[int, int] | None


class Union(Codec):
    """The constructors of one type.

    If the tags of several constructors fit, the first that consumes the cell is used, else the
    first that can be read. A type that refers to itself once, such as OutList, is read as a list,
    without recursion.
    """

    def __init__(self) -> None:
        """Create a union without constructors, since types may contain themselves."""
        self.choices: list[TaggedRecord] = []
        self._is_list = False
        self._orders: dict[tuple[int, int], tuple[list[TaggedRecord], int]] = {}

    def fill(self, constructors: Iterable[tuple[int, int, Record]]) -> None:
        """Add all constructors: tag, its bits, and the record after it."""
        for tag, tag_bits, record in constructors:
            size = record.size and (record.size[0] + tag_bits, record.size[1])
            self.choices.append(TaggedRecord(tag, tag_bits, record, size))
        if len({choice.size for choice in self.choices}) == 1:
            self.size = self.choices[0].size
        self._is_list = any([choice.record.link(self) for choice in self.choices])  # noqa: C419 - calls all

    @cached_property
    def _is_short(self) -> bool:
        """Whether it has few constructors, of which at most one fits a value."""
        starts = [f"{choice.tag:0{choice.tag_bits}b}"[: choice.tag_bits] for choice in self.choices]
        is_clear = not any(one.startswith(other) for one, other in permutations(starts, 2))
        return is_clear and len(starts) <= _MAX_CHOICES and not self._is_list

    def write(self, function: Function) -> str:
        """Read the object of the constructor that fits."""
        return function.inline(self, self._write) if self._is_short else function.call(self.load)

    def _write(self, function: Function) -> str:
        first, *others = self.choices
        if not (others or first.tag_bits):
            return first.record.write(function)
        name, head, bits = function.local(), "if", 0
        for choice in sorted(self.choices, key=lambda choice: choice.tag_bits):
            tag = "tag"
            if choice.tag_bits > bits:
                bits = choice.tag_bits
                tag = f"value >> left - {bits} & {(1 << bits) - 1} if left >= {bits} else -1"
                tag = f"(tag := {tag})"
            with function.block(f"{head} {tag} == {choice.tag}:"):
                function.add(f"left -= {bits}")
                function.add(f"{name} = f'{choice.record.write(function)}'")
            head = "elif"
        function.add("else:", f" {function.name(_refuse)}()")
        return f"{{{name}}}"

    def load(self, source: CellSlice, work: Work) -> str:
        """Read the object of the constructor that fits."""
        if self._is_list:
            return self._decode_list(source.tree, self._read(source, work, as_item=True), work)
        [text] = self._read(source, work)
        return str(text)

    @cached_property
    def read_cell(self) -> ReadCell:
        """What reads a value that fills a cell."""
        if not self._is_list:
            return super().read_cell
        function = Function()
        item = f"{function.name(self._read_item)}(tree, cell, work)"
        function.add(f"items = {function.name(self._decode_list)}(tree, {item}, work)")
        function.add("left, ref = 0, len(links)")
        return function.finish_cell("items")

    def _decode_list(self, tree: CellTree, item: Sequence[Any], work: Work) -> str:
        """Read all items of a list, after its first one."""
        before: list[str] = []
        after: list[str] = []
        start, following, end = item
        while True:
            before.append(start)
            after.append(end)
            if following is None:
                return "".join(before + after[::-1])
            if len(before) > MAX_ITEMS:
                work.refuse(f"a list of the body has more than {MAX_ITEMS} items")
            work.visit()
            start, following, end = self._read_item(tree, following, work)

    def _read_item(self, tree: CellTree, cell: int, work: Work) -> Sequence[Any]:
        """Read an item that fills a cell; most lists have one constructor of its size."""
        value, bits = read_bits(tree.cells[cell])
        refs = len(tree.links[cell])
        trials, exact = self._orders.get((bits, refs), ([], 0))
        if exact == 1:
            read = trials[0].record.read_item
            start, following, end, left, ref = read(tree, cell, value, bits, 0, work)
            if left or ref < refs:
                refuse_rest(cell)
            return start, following, end
        item = CellSlice(tree, cell)
        found = self._read(item, work, as_item=True, is_whole=True)
        check_end(item)
        return found

    def _order(self, source: CellSlice) -> tuple[list[TaggedRecord], int]:
        """Return the constructors whose tags fit, in the order tried, and how many may be whole.

        Only those of the size of the cell may consume it, so they come first.
        """
        left = source.bits_left
        size = left, len(source.tree.links[source.cell]) - source.ref
        order = self._orders.get(size)
        if order is None:
            fitting = [
                choice
                for choice in self.choices
                if choice.tag_bits + choice.record.least[0] <= left
                and choice.record.least[1] <= size[1]
                and source.peek_uint(choice.tag_bits) == choice.tag
            ]
            exact = [choice for choice in fitting if choice.size in (None, size)]
            order = [*exact, *[choice for choice in fitting if choice not in exact]], len(exact)
            if not any(choice.tag_bits for choice in self.choices):
                self._orders[size] = order
        return order

    def _read(
        self, source: CellSlice, work: Work, *, as_item: bool = False, is_whole: bool = False
    ) -> list[Any]:
        """Read the first constructor that consumes the cell, else the first that can be read.

        With ``is_whole`` it has to consume the cell. The result is text, or the parts of an item.
        """
        trials, exact = self._order(source)
        if not trials or (is_whole and not exact):
            _refuse()
        is_sure = len(trials) == 1 or (is_whole and exact == 1)
        tree, cell, value = source.tree, source.cell, source.value
        bits, ref, refs = source.bits_left, source.ref, len(tree.links[cell])
        readable: dict[TaggedRecord, list[Any]] = {}
        for choice in trials:
            read = choice.record.read_item if as_item else choice.record.read_at
            try:
                *found, left, after = read(tree, cell, value, bits - choice.tag_bits, ref, work)
            except (BocError, BodyError):
                if is_sure:
                    raise
                continue
            if is_sure or (left == 0 and after == refs):
                source.bits_left, source.ref = left, after
                return found
            readable[choice] = [*found, left, after]
        first = next((choice for choice in self.choices if choice in readable), None)
        if first is None:
            _refuse()
        *found, source.bits_left, source.ref = readable[first]
        return found


def _refuse() -> NoReturn:
    raise BodyError("no constructor of the type fits")


def decode_payload(
    tree: CellTree, cell: int, value: int, bits: int, ref: int, work: Work
) -> tuple[str, int, int] | None:
    """Return the object of the first layout that fits, and the bits and references after it.

    The body or payload begins ``bits`` before the end of a cell, with an opcode. Data after the
    layout are ignored, as in TON Center, unless the layout must be whole, or they have more bits
    than what it reads, and it reads no reference: then the opcode is that of another layout. None
    within deeper payloads and above limits, too, except those on text, which raise BodyLimit.
    """
    place = work.place
    if bits < OPCODE_BITS or not place & _PAYLOADS_MASK:
        return None
    work.place = place - 1
    try:
        for record in work.layouts.get(value >> bits - OPCODE_BITS & _OPCODE_MASK, ()):
            try:
                found = record.read_at(tree, cell, value, bits - OPCODE_BITS, ref, work)
            except (BocError, BodyError):
                continue
            _text, left, after = found
            if record.is_whole and (left or after < len(tree.links[cell])):
                continue
            if left <= bits - left or after > ref:
                return found
            work.is_mostly_unread = True
    except BodyLimit:
        if work.text_left < 0 or work.raw_left < 0:
            raise
    finally:
        work.place = place
    return None


EMPTY_CELL = '{"@type":"empty_cell"}'
_COUNT_BYTE, _LINK_BYTES = 6, 8
"""Where a small bag has the number of its cells, and the most that references of a cell take."""
_PAYLOADS_MASK = (1 << LEVEL_SHIFT) - 1
_EXOTIC_BIT, _LEAST_SIZE, _EMPTY = 8, OPCODE_BITS // 4, bytes(2)
"""The bit of d1 that exotic cells have, d2 of a cell with an opcode, and the empty cell: d1 and d2,
without data."""


class Rest(Codec):
    """``Cell`` and ``Any`` inline: the rest of the cell; ``^Cell``: a cell of any kind."""

    def load(self, source: CellSlice, work: Work) -> str:
        """Read the rest of the cell."""
        bits, ref = source.bits_left, source.ref
        refs = len(source.tree.links[source.cell])
        if not bits and ref == refs:
            return EMPTY_CELL
        found = decode_payload(source.tree, source.cell, source.value, bits, ref, work)
        text = _show_rest(source, work) if found is None else found[0]
        source.bits_left, source.ref = 0, refs
        return text

    @cached_property
    def read_cell(self) -> ReadCell:
        """What reads a payload, or shows it raw."""
        function = Function()
        show = f"{function.name(_show_raw)}(tree, cell, work)"
        decode = f"{function.name(decode_payload)}(tree, cell, value, left, 0, work)"
        function.add(f"found = {decode}", f"text = found[0] if found else {show}")
        function.add("left, ref = 0, len(links)")
        is_raw = f"head[1] < {_LEAST_SIZE} or head[0] & {_EXOTIC_BIT}"
        return function.finish_cell("text", start=f"if {is_raw}:\n  return {show}")


class RawCell(Rest):
    """The rest of the cell, which is no payload whatever it begins with: code, data."""

    def load(self, source: CellSlice, work: Work) -> str:
        """Read the rest of the cell."""
        if not (source.bits_left or source.refs_left):
            return EMPTY_CELL
        text = _show_rest(source, work)
        source.end()
        return text

    @cached_property
    def read_cell(self) -> ReadCell:
        """What shows a cell raw."""
        return _show_raw


class End(Codec):
    """The end of the cell, in place of a rest of it."""

    def load(self, source: CellSlice, work: Work) -> str:
        """Read nothing; raise BodyError if anything is left."""
        del work
        check_end(source)
        return EMPTY_CELL


def _show_rest(source: CellSlice, work: Work) -> str:
    """Return the rest of a cell as a cell of its own, in base64."""
    tree, cell, bits, ref = source.tree, source.cell, source.bits_left, source.ref
    if not (source.pos or ref):
        return _show_raw(tree, cell, work)
    children = tree.links[cell][ref:]
    head = pack_head(len(children), source.value & (1 << bits) - 1, bits)
    return _show_tree(tree, head, children, (cell, bits, ref), work)


def _show_raw(tree: CellTree, cell: int, work: Work) -> str:
    """Return a bag of cells in base64, which is written once however often it is shown."""
    head, children = tree.cells[cell], tree.links[cell]
    if head == _EMPTY:
        return EMPTY_CELL
    text = work.known.get(~cell)
    if text is not None:
        return work.recall(text)
    if not children:
        text = show_bag(serialize_single(head))
    else:
        text = _show_tree(tree, head, children, (cell, MAX_BITS, 0), work)
    work.known[~cell] = text
    return text


def _show_tree(
    tree: CellTree, head: bytes, children: Sequence[int], rest: CellRest, work: Work
) -> str:
    """Return the bag of cells in base64, or a mark for it; raise BodyLimit for too many."""
    bag = serialize_chain(tree, head, children) if len(children) <= 1 else None
    if bag is not None:
        work.count_raw(bag[_COUNT_BYTE] if children else 0)
        text = show_bag(bag)
        return work.set_aside(text) if len(text) > LONG_TEXT else text
    cells, links, size = tree.cells, tree.links, len(head)
    seen = set(children)
    todo = list(seen)
    for cell in todo:
        size += len(cells[cell]) + _LINK_BYTES
        below = links[cell]
        if below and len(seen) <= work.raw_left:
            fresh = set(below) - seen
            seen |= fresh
            todo += fresh
    work.count_raw(len(seen) + 1)
    return work.show_later(rest, size)
