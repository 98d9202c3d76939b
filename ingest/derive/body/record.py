"""Codecs of records (the fields of a constructor) and unions (the constructors of a type)."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import msgspec

from tonlake.ingest.derive.body.codec import Codec, Object, Work
from tonlake.ingest.derive.body.composite import Chunks, Reference, Repeat, check_end
from tonlake.ingest.errors import BocError, BodyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice

OPCODE_BITS = 32
MAX_ITEMS = 256
"""Maximum length of a list, such as the actions of a wallet: the TVM allows 255."""
_Found = TypeVar("_Found")
_Read: TypeAlias = "Callable[[CellSlice, Work], str]"


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


class Condition(Codec):
    """A condition on earlier fields, which has no bits; ``sides`` are their names or numbers."""

    def __init__(self, op: str, left: str, right: str) -> None:
        """Compare two sides by an operator."""
        self._holds = _OPERATORS[op]
        self._sides = left, right

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read nothing."""
        del source, work
        return ""

    def check(self, fields: Object) -> None:
        """Raise BodyError if the fields read so far do not fulfil the condition."""
        left, right = (int(str(fields.get(side, side))) for side in self._sides)
        if not self._holds(left, right):
            raise BodyError(f"the condition on {self._sides[0]} is not fulfilled")


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
        self.size = _add_sizes(parts) if self.is_plain else None
        self._link: int | None = None

    @cached_property
    def steps(self) -> tuple[list[tuple[str, _Read]], str]:
        """What is written before each value and what reads it, and what is written at the end.

        Types of one constructor without a tag are written in place.
        """
        steps: list[tuple[str, _Read]] = []
        text = self._open
        for key, part in zip(self._keys, self.parts, strict=True):
            text += key
            inner = _inline(part.codec)
            if inner is None:
                steps.append((text, part.codec.decode))
                text = ""
                continue
            below, end = inner.steps
            for before, read in below:
                steps.append((text + before, read))
                text = ""
            text += end
        return steps, text + "}"

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object of the fields."""
        if self.is_plain:
            steps, end = self.steps
            return "".join([before + read(source, work) for before, read in steps]) + end
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
                if not self.is_plain:
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
            self._link = links[0]
        return self._link is not None

    def decode_item(self, source: CellSlice, work: Work) -> Link:
        """Read an item of a list, without the next one."""
        place = self._link
        if place is None:
            return Link(self.decode(source, work), None, "")
        before = self._decode_between(0, place, source, work)
        following = source.load_ref()
        after = self._decode_between(place + 1, len(self.parts), source, work)
        return Link(f"{self._open}{before}{self._keys[place]}", following, f"{after}}}")

    def _decode_between(self, start: int, end: int, source: CellSlice, work: Work) -> str:
        keys, parts = self._keys[start:end], self.parts[start:end]
        texts = [
            key + part.codec.decode(source, work) for key, part in zip(keys, parts, strict=True)
        ]
        return "".join(texts)


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
    """A constructor of a union: its tag, and the record after it."""

    tag: int
    tag_bits: int
    record: Record


class Union(Codec):
    """The constructors of one type.

    If the tags of several constructors fit, the first that consumes the cell is used, else the
    first that can be read. A type that refers to itself once, such as OutList, is read as a list,
    without recursion.
    """

    def __init__(self) -> None:
        """Create a union; ``choices`` are added later, since types may contain themselves."""
        self.choices: list[Choice] = []

    @cached_property
    def _is_list(self) -> bool:
        linked = [choice.record.link(self) for choice in self.choices]
        return any(linked)

    @cached_property
    def only(self) -> Record | None:
        """The record of a type that has one constructor, without a tag."""
        first = self.choices[0]
        is_only = len(self.choices) == 1 and not first.tag_bits and not self._is_list
        return first.record if is_only else None

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the object of the constructor that fits."""
        if self.only is not None:
            return self.only.decode(source, work)
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
            cell = source.tree.slice(item.following)
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
        left = source.bits_left
        fitting = [
            choice
            for choice in self.choices
            if not choice.tag_bits
            or (choice.tag_bits <= left and source.peek_uint(choice.tag_bits) == choice.tag)
        ]
        if len(fitting) > 1:
            refs = source.refs_left
            exact = [
                choice
                for choice in fitting
                if choice.record.size in {None, (left - choice.tag_bits, refs)}
            ]
            if not is_whole or len(exact) > 1:
                return _read_first(fitting, exact, source, work, read)
            fitting = exact
        if not fitting:
            raise BodyError("no constructor of the type has this tag")
        source.skip(fitting[0].tag_bits)
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
    readable: dict[Choice, tuple[_Found, CellSlice]] = {}
    for choice in [*exact, *[each for each in fitting if each not in exact]]:
        attempt = source.copy()
        attempt.skip(choice.tag_bits)
        try:
            readable[choice] = read(choice.record, attempt, work), attempt
        except (BocError, BodyError):
            continue
        if not (attempt.bits_left or attempt.refs_left):
            break
    else:
        choice = next((each for each in fitting if each in readable), choice)
    if choice not in readable:
        raise BodyError("no constructor of the type fits")
    found, end = readable[choice]
    source.skip(source.bits_left - end.bits_left)
    source.ref = end.ref
    return found


def decode_layout(source: CellSlice, work: Work) -> str | None:
    """Return the object of the first layout that fits the start of a body; None if none does.

    Data after the layout are ignored, as in TON Center, unless the layout must be whole.

    Raises:
        BodyLimit: decoding takes more work than is allowed.
    """
    for record in work.layouts.get(source.peek_uint(OPCODE_BITS), ()):
        attempt = source.copy()
        attempt.skip(OPCODE_BITS)
        try:
            text: str = record.decode(attempt, work)
        except (BocError, BodyError):
            continue
        if not (record.is_whole and (attempt.bits_left or attempt.refs_left)):
            return text
    return None
