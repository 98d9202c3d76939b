"""Codecs of types that depend on numbers, which are known when a value is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.body.codec import Codec, Work
from tonlake.ingest.derive.body.grammar import Type
from tonlake.ingest.derive.body.number import Numbers, evaluate, match
from tonlake.ingest.derive.body.record import Union
from tonlake.ingest.errors import BocError, BodyError

MAX_USES = 64
"""Maximum depth of types with numbers, and of types inside themselves."""
_MAX_MADE = 1024
"""How many codecs of a type are kept, by number."""


class Late(Codec):
    """A type with a number that is not a constant, such as ``(bits n)``.

    An unknown number is that of the bits that are left, if ``is_open``.
    """

    def __init__(self, make: Callable[[int], Codec], number: Type, *, is_open: bool) -> None:
        self._make = lru_cache(_MAX_MADE)(make)
        self._number, self._is_open = number, is_open

    def load(self, source: CellSlice, work: Work) -> str:
        """Read a value; raise BodyError if there is no such type."""
        number = evaluate(self._number, work.numbers)
        if number is None:
            number = source.bits_left
            if not self._is_open or not match(self._number, number, work.numbers):
                raise BodyError("the number of a type is unknown")
        return self._make(number).read(source, work)


class Use(Codec):
    """A use of a type with numbers, or of a type inside itself, which counts as one more cell.

    Numbers that are unknown before the value is read are known after it.
    """

    def __init__(self, union: Union, arguments: Sequence[Type] = ()) -> None:
        self.union, self._arguments = union, arguments

    def load(self, source: CellSlice, work: Work) -> str:
        """Read the first constructor that consumes the cell, else the first that can be read."""
        work.visit()
        work.uses += 1
        if work.uses > MAX_USES:
            work.refuse(f"more than {MAX_USES} types of the body are nested in each other")
        try:
            text, results = self._read(source, work)
        finally:
            work.uses -= 1
        for argument, number in zip(self._arguments, results, strict=True):
            if number is not None and not match(argument, number, work.numbers):
                raise BodyError(f"a type has the number {number}, which is not that of its use")
        return text

    def _read(self, source: CellSlice, work: Work) -> tuple[str, list[int | None]]:
        given = [evaluate(each, work.numbers) for each in self._arguments]
        found = None
        for choice in self.union.choices:
            numbers: Numbers = {}
            pairs = zip(choice.record.parameters, given, strict=True)
            if not all(number is None or match(each, number, numbers) for each, number in pairs):
                continue
            attempt = source.copy()
            try:
                if attempt.load_uint(choice.tag_bits) != choice.tag:
                    continue
                text = choice.record.load(attempt, work, numbers)
            except (BocError, BodyError):
                continue
            is_whole = not (attempt.bits_left or attempt.refs_left)
            if is_whole or found is None:
                results = [evaluate(each, numbers) for each in choice.record.parameters]
                found = text, results, attempt
            if is_whole:
                break
        if found is None:
            raise BodyError("no constructor of the type fits")
        text, results, end = found
        source.bits_left, source.ref = end.bits_left, end.ref
        return text, results
