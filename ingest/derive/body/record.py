"""Codecs of records (the fields of a constructor), unions (those of a type), payloads.

A payload is the rest of a cell or a referenced one of any kind: it is decoded by the layout of its
opcode, else shown as a bag in base64.
"""

import operator
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import ORDINARY, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc, serialize_single
from tonlake.ingest.derive.body.codec import MAX_ITEMS, Codec, Object, Sized, Work
from tonlake.ingest.derive.body.composite import Chunks, Reference, Repeat, check_end
from tonlake.ingest.errors import BocError, BodyError, BodyLimit

OPCODE_BITS = 32
_MAX_KNOWN = 8
"""Maximum bits of adjacent numbers whose texts are kept."""
_MAX_SPREAD = 8
"""Greatest difference in bits between the tags of a type that are found by one table."""
_Found = TypeVar("_Found")
_Read: TypeAlias = "Callable[[CellSlice, Work], str]"
_Written: TypeAlias = "tuple[str, Codec]"
_Steps: TypeAlias = "tuple[list[tuple[str, _Read]], str]"


class Part(NamedTuple):
    """A field of a record; with ``switch`` its presence depends on that earlier field.

    ``bit`` is the bit of the switch that is tested; None tests for any set bit. ``length`` names
    the earlier field with the number of items of a list.
    """

    name: str
    codec: Codec
    switch: str | None = None
    bit: int | None = None
    length: str | None = None

    def is_present(self, fields: Object) -> bool:
        """Return whether the field is present, given the fields before it."""
        if self.switch is None:
            return True
        value = fields.get(self.switch)
        if not isinstance(value, str | bool):
            raise BodyError(f"{self.name} depends on {self.switch}, which is not a number")
        number = int(value)
        return bool(number if self.bit is None else number >> self.bit & 1)

    def list_asked(self) -> tuple[str, ...]:
        """Return the names of earlier fields, if any, whose values it needs."""
        if isinstance(self.codec, Condition):
            return self.codec.sides
        return tuple(name for name in (self.switch, self.length) if name)


class Condition(Codec):
    """A condition on earlier fields, which has no bits; ``sides`` are their names or numbers."""

    def __init__(self, op: str, left: str, right: str) -> None:
        """Compare two sides by an operator."""
        self._holds = _OPERATORS[op]
        self.sides = left, right

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read nothing."""
        del source, work
        return ""

    def check(self, fields: Object) -> None:
        """Raise BodyError if the fields read so far do not fulfil the condition."""
        left, right = (int(str(fields.get(side, side))) for side in self.sides)
        if not self._holds(left, right):
            raise BodyError(f"the condition on {self.sides[0]} is not fulfilled")


_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


class Link(NamedTuple):
    """An item of a list: its JSON before and after the next item, and the cell of that one."""

    before: str
    following: int | None
    after: str


class Record(Codec):
    """A sequence of fields; a named constructor is shown as ``@type``."""

    def __init__(self, name: str, parts: Sequence[Part], *, is_whole: bool = False) -> None:
        """Create the codec of one constructor, without its tag.

        ``is_whole`` means that a body has this layout only if nothing follows it.
        """
        self.name = name
        self.parts = parts
        self.is_whole = is_whole
        self._open = f'{{"@type":{_encode(name)}' if name else "{"
        self._keys = [
            f"{',' if name or place else ''}{_encode(part.name)}:"
            for place, part in enumerate(parts)
        ]
        self.is_plain = not any(
            part.switch or part.length or isinstance(part.codec, Condition) for part in parts
        )
        self._asked = {name for part in parts for name in part.list_asked()}
        self.size = _add_sizes(parts) if self.is_plain else None
        self._steps: _Steps | None = None
        self._link: tuple[_Steps, _Steps] | None = None

    def list_written(self) -> tuple[list[_Written], str]:
        """Return what is written before each value, with its codec, and at the end.

        Types of one constructor without a tag are written in place.
        """
        return self._list_between(self._open, 0, len(self.parts), "}")

    def _list_between(
        self, text: str, start: int, stop: int, end: str
    ) -> tuple[list[_Written], str]:
        written: list[_Written] = []
        for key, part in zip(self._keys[start:stop], self.parts[start:stop], strict=True):
            text += key
            inner = _inline(part.codec)
            below, after = inner.list_written() if inner else ([("", part.codec)], "")
            for before, codec in below:
                written.append((text + before, codec))
                text = ""
            text += after
        return written, text + end

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object of the fields."""
        if self._steps is not None:
            steps, end = self._steps
            text = ""
            for before, read in steps:
                text += before + read(source, work)
            return text + end
        if self.is_plain:
            self._steps = _compile(*self.list_written())
            return self.decode(source, work)
        found = self.decode_fields(source, work)
        fields = [key + text for key, text in zip(self._keys, found, strict=True) if text]
        return f"{self._open}{''.join(fields)}}}"

    def decode_fields(self, source: CellSlice, work: Work) -> list[str]:
        """Read the fields, each as JSON, or empty text for one that is absent."""
        texts: list[str] = []
        values: Object = {}
        for part in self.parts:
            if not part.is_present(values):
                texts.append("")
            elif isinstance(part.codec, Condition):
                part.codec.check(values)
                texts.append("")
            elif part.length:
                items = _decode_items(part, int(str(values[part.length])), source, work)
                texts.append(f"[{','.join(items)}]")
            else:
                texts.append(part.codec.decode(source, work))
                if part.name in self._asked:
                    values[part.name] = msgspec.json.decode(texts[-1])
        return texts

    def link(self, union: Codec) -> bool:
        """Note the field that refers to a value of the record's own type; return if there is."""
        links = [
            place
            for place, part in enumerate(self.parts)
            if isinstance(part.codec, Reference) and part.codec.inner is union
        ]
        if len(links) == 1 and self.is_plain:
            [place] = links
            before = self._list_between(self._open, 0, place, self._keys[place])
            after = self._list_between("", place + 1, len(self.parts), "}")
            self._link = _compile(*before), _compile(*after)
        return self._link is not None

    def decode_item(self, source: CellSlice, work: Work) -> Link:
        """Read an item of a list, without the next one."""
        if self._link is None:
            return Link(self.decode(source, work), None, "")
        (steps, end), (steps_after, end_after) = self._link
        before = "".join([text + read(source, work) for text, read in steps]) + end
        following = source.load_ref()
        after = "".join([text + read(source, work) for text, read in steps_after]) + end_after
        return Link(before, following, after)


def _compile(written: Iterable[_Written], end: str) -> _Steps:
    """Return what is written before each value and what reads it; numbers are read in runs."""
    steps: list[_Step] = []
    for is_sized, run in groupby(written, lambda value: isinstance(value[1], Sized)):
        if is_sized:
            steps.append(_compile_run([(text, codec) for text, codec in run]))
        else:
            steps += [_Step(text, codec.decode, codec.zeros) for text, codec in run]
    compiled: list[tuple[str, _Read]] = []
    for may_be_zero, group in groupby(steps, lambda step: step.zeros is not None):
        listed = list(group)
        if may_be_zero and len(listed) > 1:
            compiled.append(("", _skip_zeros(listed)))
        else:
            compiled += [(step.text, step.read) for step in listed]
    return compiled, end


class _Step(NamedTuple):
    """A value of a record: what is written before it, what reads it, and ``Codec.zeros``."""

    text: str
    read: _Read
    zeros: tuple[int, str] | None


def _skip_zeros(steps: Sequence[_Step]) -> _Read:
    """Return the reader of adjacent values that reads the last ones at once if they are zero."""
    bits, zeros = 0, ""
    reads: list[tuple[int, int, str, str, _Read]] = []
    for step in reversed(steps):
        zero_bits, zero = step.zeros or (0, "")
        bits += zero_bits
        zeros = step.text + zero + zeros
        reads.append((bits, (1 << bits) - 1, zeros, step.text, step.read))
    reads.reverse()

    def read(source: CellSlice, work: Work) -> str:
        text = ""
        for bits, mask, zeros, before, read_value in reads:
            left = source.bits_left - bits
            if left >= 0 and not source.value >> left & mask:
                source.bits_left = left
                return text + zeros
            text += before + read_value(source, work)
        return text

    return read


def _compile_run(run: Sequence[tuple[str, Any]]) -> _Step:
    """Return the step of adjacent numbers (``Sized``), which are cut out of one."""
    template = "".join([text.replace("%", "%%") + codec.form for text, codec in run])
    total = shift = sum(codec.bits for _text, codec in run)
    cuts = []
    for _text, codec in run:
        shift -= codec.bits
        cuts.append((shift, (1 << codec.bits) - 1, codec.convert))

    known: dict[int, str] = {}

    def write(number: int) -> str:
        numbers = [(number >> shift & mask, convert) for shift, mask, convert in cuts]
        return template % tuple([convert(cut) if convert else cut for cut, convert in numbers])

    def read(source: CellSlice, work: Work) -> str:
        del work
        return write(source.load_uint(total))

    def read_known(source: CellSlice, work: Work) -> str:
        del work
        number = source.load_uint(total)
        return known.get(number) or known.setdefault(number, write(number))

    def read_one(source: CellSlice, work: Work) -> str:
        del work
        return template % source.load_uint(total)

    zeros = total, write(0)
    if total <= _MAX_KNOWN:
        return _Step("", read_known, zeros)
    return _Step("", read if len(cuts) > 1 or cuts[0][2] else read_one, zeros)


def _decode_items(part: Part, count: int, source: CellSlice, work: Work) -> list[str]:
    """Read the items of a list; raise BodyError if there are not ``count``."""
    if isinstance(part.codec, Repeat):
        return part.codec.decode_items(source, work, count)
    items = part.codec.decode_items(source, work) if isinstance(part.codec, Chunks) else []
    if len(items) != count:
        raise BodyError(f"{part.name} has {len(items)} items, not {count}")
    return items


def _add_sizes(parts: Sequence[Part]) -> tuple[int, int] | None:
    sizes = [part.codec.size for part in parts]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    return sum(bits for bits, _refs in known), sum(refs for _bits, refs in known)


def _inline(codec: Codec) -> Record | None:
    """Return the record that a type consists of, if it is written without a choice."""
    record = codec.only if isinstance(codec, Union) else codec
    return record if isinstance(record, Record) and record.is_plain else None


def _encode(name: str) -> str:
    return msgspec.json.encode(name).decode()


class Choice(NamedTuple):
    """A constructor of a union: its tag, the record after it, and the size of both, if fixed."""

    tag: int
    tag_bits: int
    record: Record
    size: tuple[int, int] | None


class Union(Codec):
    """The constructors of one type.

    If the tags of several constructors fit, the first that consumes the cell is used, else the
    first that can be read. A type that refers to itself once, such as OutList, is read as a list,
    without recursion. ``only`` is the record of a type of one constructor without a tag.
    """

    def __init__(self) -> None:
        """Create a union without constructors, since types may contain themselves."""
        self.choices: list[Choice] = []
        self.only: Record | None = None
        self._is_list = False
        self._width = self._mask = 0
        self._table: dict[int, list[Choice]] | None = None
        self._sure: dict[int, Choice] = {}

    def fill(self, constructors: Iterable[tuple[int, int, Record]]) -> None:
        """Add all constructors: tag, its bits, and the record after it."""
        for tag, tag_bits, record in constructors:
            size = record.size and (record.size[0] + tag_bits, record.size[1])
            self.choices.append(Choice(tag, tag_bits, record, size))
        if len({choice.size for choice in self.choices}) == 1:
            self.size = self.choices[0].size
        self._is_list = any([choice.record.link(self) for choice in self.choices])  # noqa: C419 - calls all
        first = self.choices[0]
        if len(self.choices) == 1 and not first.tag_bits and not self._is_list:
            self.only = first.record
        self._tabulate()

    def _tabulate(self) -> None:
        widths = [choice.tag_bits for choice in self.choices]
        self._width = max(widths)
        self._mask = (1 << self._width) - 1
        if self._width - min(widths) > _MAX_SPREAD:
            return
        self._table = {}
        for choice in self.choices:
            rest = self._width - choice.tag_bits
            for low in range(1 << rest):
                self._table.setdefault(choice.tag << rest | low, []).append(choice)
        if not self._is_list:
            self._sure = {tag: fit[0] for tag, fit in self._table.items() if len(fit) == 1}

    def _list_fitting(self, source: CellSlice) -> Sequence[Choice]:
        """Return the constructors whose tags fit."""
        left = source.bits_left
        if self._table is not None and left >= self._width:
            return self._table.get(source.peek_uint(self._width), ())
        return [
            choice
            for choice in self.choices
            if choice.tag_bits <= left and source.peek_uint(choice.tag_bits) == choice.tag
        ]

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the object of the constructor that fits."""
        if self.only is not None:
            return self.only.decode(source, work)
        left = source.bits_left
        if left >= self._width:
            choice = self._sure.get(source.value >> left - self._width & self._mask)
            if choice is not None:
                source.bits_left = left - choice.tag_bits
                return choice.record.decode(source, work)
        if self._is_list:
            return self._decode_list(source, work)
        return self._read(source, work, Record.decode)

    def _decode_list(self, source: CellSlice, work: Work) -> str:
        """Read all items of a list."""
        before: list[str] = []
        after: list[str] = []
        item = self._read(source, work, Record.decode_item)
        while True:
            before.append(item.before)
            after.append(item.after)
            if item.following is None:
                return "".join(before + after[::-1])
            if len(before) > MAX_ITEMS:
                work.refuse(f"a list of the body has more than {MAX_ITEMS} items")
            work.visit()
            cell = CellSlice(source.tree, item.following)
            item = self._read(cell, work, Record.decode_item, is_whole=True)
            check_end(cell)

    def _read(
        self,
        source: CellSlice,
        work: Work,
        read: Callable[[Record, CellSlice, Work], _Found],
        *,
        is_whole: bool = False,
    ) -> _Found:
        """Read the constructor that fits; with ``is_whole`` it has to consume the cell."""
        fitting = self._list_fitting(source)
        if len(fitting) > 1:
            size = source.bits_left, len(source.tree.links[source.cell]) - source.ref
            exact = [choice for choice in fitting if choice.size is None or choice.size == size]
            if not is_whole or len(exact) > 1:
                return _read_first(fitting, exact, source, work, read)
            fitting = exact
        if not fitting:
            raise BodyError("no constructor of the type has this tag")
        source.bits_left -= fitting[0].tag_bits
        return read(fitting[0].record, source, work)


def _read_first(
    fitting: Sequence[Choice],
    exact: Sequence[Choice],
    source: CellSlice,
    work: Work,
    read: Callable[[Record, CellSlice, Work], _Found],
) -> _Found:
    """Read the first constructor that consumes the cell, else the first that can be read.

    Only ``exact`` have a size with which they may consume it, so they are tried first.
    """
    bits, ref = source.bits_left, source.ref
    readable: dict[Choice, tuple[_Found, int, int]] = {}
    for choice in [*exact, *[choice for choice in fitting if choice not in exact]]:
        source.bits_left, source.ref = bits - choice.tag_bits, ref
        try:
            found = read(choice.record, source, work)
        except (BocError, BodyError):
            continue
        if not (source.bits_left or source.refs_left):
            return found
        readable[choice] = found, source.bits_left, source.ref
    first = next((choice for choice in fitting if choice in readable), None)
    if first is None:
        raise BodyError("no constructor of the type fits")
    found, source.bits_left, source.ref = readable[first]
    return found


def decode_layout(source: CellSlice, work: Work) -> str | None:
    """Return the object of the first layout that fits the start of a body; None if none does.

    Data after the layout are ignored, as in TON Center, unless the layout must be whole, or they
    have more bits than what it reads, and it reads no reference: then the opcode is that of another
    layout. Where no layout fits, the position in ``source`` stays as it is.

    Raises:
        BodyLimit: decoding takes more work than is allowed.
    """
    bits, ref = source.bits_left, source.ref
    for record in work.layouts.get(source.peek_uint(OPCODE_BITS), ()):
        source.bits_left, source.ref = bits - OPCODE_BITS, ref
        try:
            text: str = record.decode(source, work)
        except (BocError, BodyError):
            continue
        if record.is_whole and (source.bits_left or source.refs_left):
            continue
        if source.bits_left <= bits - source.bits_left or source.ref > ref:
            return text
        work.is_mostly_unread = True
    source.bits_left, source.ref = bits, ref
    return None


EMPTY_CELL = '{"@type":"empty_cell"}'
_EMPTY = bytes(2)
"""The empty cell: d1 and d2, without data."""


class Rest(Codec):
    """``Cell`` and ``Any`` inline: the rest of the cell."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the rest of the cell."""
        bits, ref = source.bits_left, source.ref
        if not (bits or source.refs_left):
            return EMPTY_CELL
        text = _decode_payload(source, work)
        if text is None:
            source.bits_left, source.ref = bits, ref
            text = _show_rest(source, work)
        source.end()
        return text


class RawCell(Rest):
    """The rest of the cell, which is no payload whatever it begins with: code, data."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the rest of the cell."""
        if not (source.bits_left or source.refs_left):
            return EMPTY_CELL
        text = _show_rest(source, work)
        source.end()
        return text


class End(Codec):
    """The end of the cell, in place of a rest of it."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read nothing; raise BodyError if anything is left."""
        del work
        check_end(source)
        return EMPTY_CELL


class LinkedRaw(Reference):
    """``^Cell``: a referenced cell of any kind; ``inner`` reads the rest of it."""

    def __init__(self, inner: Rest) -> None:
        """Note whether the cell may be a payload."""
        super().__init__(inner)
        self._is_raw = isinstance(inner, RawCell)

    def _read(self, tree: CellTree, cell: int, work: Work) -> str:
        is_raw = self._is_raw and tree.cells[cell] != _EMPTY
        if is_raw or tree.kind(cell) != ORDINARY:
            return _show_raw(tree, cell, work)
        return self.inner.decode(CellSlice(tree, cell), work)


def _decode_payload(source: CellSlice, work: Work) -> str | None:
    """Return the object of the first layout that fits; None if none does within the limits."""
    if not work.payloads or source.bits_left < OPCODE_BITS:
        return None
    level = work.level
    work.payloads -= 1
    try:
        return decode_layout(source, work)
    except BodyLimit:
        if work.text_left < 0:
            raise
        work.level = level
        return None
    finally:
        work.payloads += 1


def _show_rest(source: CellSlice, work: Work) -> str:
    """Return the rest of a cell as a cell of its own, in base64."""
    if not (source.pos or source.ref):
        return _show_raw(source.tree, source.cell, work)
    # Without references it needs no tree, in which all other cells would be hashed.
    builder = CellBuilder(source.tree if source.refs_left else None)
    builder.store_uint(source.peek_uint(source.bits_left), source.bits_left)
    for cell in source.tree.refs(source.cell)[source.ref :]:
        builder.store_ref(cell)
    return _show_raw(builder.tree, builder.end(), work)


def _show_raw(tree: CellTree, cell: int, work: Work) -> str:
    """Return a bag of cells in base64, which is written once however often it is shown."""
    text = work.known.get((tree, cell))
    if not isinstance(text, str):
        is_single = not tree.links[cell]
        bag = serialize_single(tree.cells[cell]) if is_single else serialize_boc(tree, [cell])
        work.spend(len(bag))
        text = work.known[tree, cell] = f'"{b64encode(bag).decode()}"'
    return text
