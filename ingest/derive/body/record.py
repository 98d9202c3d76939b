"""Codecs of records (the fields of a constructor) and unions (the constructors of a type)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tonlake.ingest.derive.body.codec import Codec, Object, Value, Work
from tonlake.ingest.derive.body.program import Op, to_word
from tonlake.ingest.derive.body.simple import Flag, Unsigned
from tonlake.ingest.errors import BocError, BodyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.body.program import Program


MAX_PARTS, MAX_NUMBER_BITS = 64, 64
"""Limits of the native decoder: fields of a record, and bits of a number that fields depend on."""


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


class Record(Codec):
    """A sequence of fields; a named constructor is shown as ``@type``."""

    op = Op.RECORD

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        """Create the codec of one constructor, without its tag."""
        self.name = name
        self.parts = parts

    def decode(self, source: CellSlice, work: Work) -> Object:
        """Read an object of the fields."""
        fields: Object = {"@type": self.name} if self.name else {}
        for part in self.parts:
            if part.switch is None or part.is_present(fields):
                value = fields[part.name] = part.codec.decode(source, work)
                if (
                    part.length
                    and isinstance(value, list)
                    and fields[part.length] != str(len(value))
                ):
                    raise BodyError(
                        f"{part.name} has {len(value)} items, not {fields[part.length]}"
                    )
        return fields

    def arguments(self, program: Program) -> Sequence[int] | None:
        """Return the name, and for each part its key, its node and its dependencies."""
        places = {part.name: place for place, part in enumerate(self.parts)}
        if len(places) < len(self.parts) or len(places) > MAX_PARTS:
            return None
        head = program.text(b'"@type":' + msgspec.json.encode(self.name)) if self.name else -1
        words = [head, len(self.parts)]
        for place, part in enumerate(self.parts):
            words += [program.key(part.name), program.add(part.codec)]
            for name in (part.switch, part.length):
                if name is not None and not self._is_number(places.get(name, place), place):
                    return None
            words += [places[part.switch] if part.switch else -1]
            words += [-1 if part.bit is None else part.bit]
            words += [places[part.length] if part.length else -1]
        return words

    def _is_number(self, place: int, before: int) -> bool:
        """Return whether a part precedes ``before``, is always present and is a small number."""
        part = self.parts[place]
        is_small = isinstance(part.codec, Flag) or (
            isinstance(part.codec, Unsigned) and part.codec.bits <= MAX_NUMBER_BITS
        )
        return place < before and part.switch is None and is_small


class Choice(NamedTuple):
    """A constructor of a union: its tag, and the record after it."""

    tag: int
    tag_bits: int
    record: Record


class Union(Codec):
    """The constructors of one type.

    If the tags of several constructors fit, the first that consumes the cell is used, else the
    first that can be read.
    """

    op = Op.UNION

    def __init__(self) -> None:
        """Create a union; ``choices`` are added later, since types may contain themselves."""
        self.choices: list[Choice] = []

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object of the constructor that fits."""
        fitting = [choice for choice in self.choices if _fits(choice, source)]
        if not fitting:
            raise BodyError("no constructor of the type has this tag")
        if len(fitting) == 1:
            source.skip(fitting[0].tag_bits)
            return fitting[0].record.decode(source, work)
        return _decode_first(fitting, source, work)

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the choices: tag, width of the tag, and node."""
        words = []
        for choice in self.choices:
            words += [to_word(choice.tag), choice.tag_bits, program.add(choice.record)]
        return len(self.choices), *words


def _decode_first(fitting: Sequence[Choice], source: CellSlice, work: Work) -> Value:
    """Read the first constructor that consumes the cell, else the first that can be read."""
    level = work.level
    found: tuple[Value, CellSlice] | None = None
    for choice in fitting:
        attempt = source.copy()
        attempt.skip(choice.tag_bits)
        work.level = level
        try:
            value = choice.record.decode(attempt, work)
        except (BocError, BodyError):
            continue
        is_exact = not attempt.bits_left and not attempt.refs_left
        if is_exact or found is None:
            found = value, attempt
        if is_exact:
            break
    work.level = level
    if found is None:
        raise BodyError("no constructor of the type fits")
    first, end = found
    source.skip(source.bits_left - end.bits_left)
    source.ref = end.ref
    return first


def _fits(choice: Choice, source: CellSlice) -> bool:
    """Return whether a slice begins with the tag of a constructor."""
    bits = choice.tag_bits
    return bits <= source.bits_left and source.peek_uint(bits) == choice.tag
