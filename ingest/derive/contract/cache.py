"""Caches answers of get-methods and parsed instructions of codes between commits.

An answer is cached if it depends on code, data, address and arguments alone: that of a reader of
data cells, or of a run that read nothing else. It may depend on the global version, but a later
one merely adds instructions, and failures are not cached. Only questions with arguments are cached:
a master or collection is asked the same question for every new state of its wallet or item, as its
answer verifies their address. Questions without arguments are about data that are new each time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.program import Program
from tonlake.ingest.derive.contract.stack import make_slice

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tonlake.ingest.derive.contract.stack import Cell, Value

MAX_ANSWERS = 20_000
"""Maximum number of answers, 600 bytes each with their key: enough for accounts that recur within a
few commits."""

MAX_PROGRAMS = 300
"""Maximum number of codes, up to 300 kB each once fully run: more than most commits have."""


class _Bits(NamedTuple):
    """A slice without references."""

    value: int
    bits: int


class AnswerCache:
    """LRU caches of answers, by everything they depend on, and of programs, by code hash."""

    def __init__(self) -> None:
        """Create empty caches."""
        self._answers: OrderedDict[Hashable, tuple[int | _Bits | None, ...]] = OrderedDict()
        self._programs: OrderedDict[bytes, Program] = OrderedDict()

    def find(self, key: Hashable) -> list[Value] | None:
        """Return the cached answer to a question; None if there is none."""
        packed = self._answers.get(key)
        if packed is None:
            return None
        self._answers.move_to_end(key)
        return [make_slice(*value) if isinstance(value, _Bits) else value for value in packed]

    def keep(self, key: Hashable, answer: Sequence[Value]) -> None:
        """Cache an answer of integers, nulls and slices without references; ignore any other."""
        packed = tuple(map(_pack, answer))
        if not all(value is None or isinstance(value, int | _Bits) for value in packed):
            return
        self._answers[key] = packed
        if len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)

    def find_program(self, code: Cell) -> Program:
        """Return the program of a code."""
        code_hash = code.hash
        if code_hash in self._programs:
            self._programs.move_to_end(code_hash)
        else:
            self._programs[code_hash] = Program(code)
            if len(self._programs) > MAX_PROGRAMS:
                self._programs.popitem(last=False)
        return self._programs[code_hash]


def _pack(value: Value) -> Value:
    if not isinstance(value, CellSlice) or value.refs_left:
        return value
    return _Bits(value.peek_uint(value.bits_left), value.bits_left)
