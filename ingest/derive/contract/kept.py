"""What is kept from commit to commit: answers of get-methods, and the instructions of codes.

An answer is kept that follows from code, data, address and arguments alone: those of a reader of
data cells and those of ``machine``, which has no instruction that reads more. They are for
questions with arguments, which a master or a collection is asked again with every new state of its
wallet or item: the address that it gives them verifies these. Questions without arguments are
about data that are new whenever they are asked.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.machine.run import Program
from tonlake.ingest.derive.contract.stack import make_slice
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tonlake.ingest.derive.contract.stack import Cell, Value

ANSWERS_KEPT = 20_000
"""Answers, 600 bytes each with their key: as many accounts as come back within some commits."""

PROGRAMS_KEPT = 300
"""Codes, up to 300 kB each once all of it was run: more than most commits have."""


class _Bits(NamedTuple):
    """A slice without references."""

    value: int
    bits: int


class KeptAnswers:
    """Answers by all that they follow from, and programs by code; the oldest are dropped."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._answers: OrderedDict[Hashable, tuple[int | _Bits | None, ...]] = OrderedDict()
        self._programs: OrderedDict[bytes, Program | None] = OrderedDict()

    def find(self, key: Hashable) -> list[Value] | None:
        """Return the answer to a question; None where it is not kept."""
        packed = self._answers.get(key)
        if packed is None:
            return None
        self._answers.move_to_end(key)
        return [make_slice(*value) if isinstance(value, _Bits) else value for value in packed]

    def keep(self, key: Hashable, answer: Sequence[Value]) -> None:
        """Keep an answer of integers, nulls and slices without references; leave others."""
        packed = tuple(map(_pack, answer))
        if not all(value is None or isinstance(value, int | _Bits) for value in packed):
            return
        self._answers[key] = packed
        if len(self._answers) > ANSWERS_KEPT:
            self._answers.popitem(last=False)

    def find_program(self, code: Cell) -> Program | None:
        """Return the program of a code; None where the machine cannot run it."""
        code_hash = code.hash
        if code_hash in self._programs:
            self._programs.move_to_end(code_hash)
        else:
            self._programs[code_hash] = _make_program(code)
            if len(self._programs) > PROGRAMS_KEPT:
                self._programs.popitem(last=False)
        return self._programs[code_hash]


def _make_program(code: Cell) -> Program | None:
    try:
        return Program(code)
    except BocError:
        return None


def _pack(value: Value) -> Value:
    if not isinstance(value, CellSlice) or value.refs_left:
        return value
    return _Bits(value.peek_uint(value.bits_left), value.bits_left)
