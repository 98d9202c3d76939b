"""Code: bits and references that are decoded into steps when they are first run.

A step takes the stack, and returns None or what comes next: a Continuation is called, a Jump goes
to one for good, RETURN ends the one at work, and an iterator of steps is run like a called one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Union

from tonlake.ingest.derive.contract.machine.stack import Declined, Stack
from tonlake.ingest.derive.contract.stack import Cell

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree


class Jump:
    """Goes on with a continuation in place of the one at work."""

    __slots__ = ("target",)

    def __init__(self, target: Continuation) -> None:
        """Go to ``target``."""
        self.target = target


class Return:
    """Ends the continuation at work."""


RETURN = Return()

Step = Callable[[Stack], "Signal"]


Signal = Union["Continuation", Jump, Return, Iterator[Step], None]
Decode = Callable[["Code"], "tuple[list[Step], int]"]


class Code:
    """Bits and references of a code; what a read lacks raises Declined."""

    __slots__ = ("_value", "bits_left", "decode", "refs", "root", "tree")

    def __init__(self, start: CellSlice, decode: Decode, root: Continuation | None = None) -> None:
        """Take what is left of a slice.

        Args:
            start: Where it begins.
            decode: Makes steps of code, and sums up their gas.
            root: The beginning of all of the code, if this is not it.
        """
        self.tree: CellTree = start.tree
        self.bits_left = start.bits_left
        self._value = start.peek_uint(start.bits_left)
        self.refs = self.tree.links[start.cell][start.ref :]
        self.decode = decode
        self.root = root or Continuation(self)

    def peek(self, bits: int) -> int:
        """Return an unsigned integer without moving; zeroes stand behind the last bit."""
        left = self.bits_left - bits
        value = self._value >> left if left >= 0 else self._value << -left
        return value & ((1 << bits) - 1)

    def take(self, bits: int) -> int:
        """Read an unsigned integer."""
        left = self.bits_left - bits
        if left < 0:
            raise Declined("an instruction that is cut off")
        self.bits_left = left
        return self._value >> left & ((1 << bits) - 1)

    def take_signed(self, bits: int) -> int:
        """Read a signed integer."""
        value = self.take(bits)
        return value - (1 << bits) if value >> bits - 1 else value

    def take_ref(self) -> Cell:
        """Read a reference."""
        if not self.refs:
            raise Declined("an instruction that lacks a reference")
        first, self.refs = self.refs[0], self.refs[1:]
        return Cell(self.tree, first)

    def take_part(self, bits: int, refs: int) -> Code:
        """Read bits and references as code."""
        part = Code.__new__(Code)
        part.tree, part.decode, part.root = self.tree, self.decode, self.root
        part._value, part.bits_left = self.take(bits), bits  # noqa: SLF001 - the same class
        if len(self.refs) < refs:
            raise Declined("an instruction that lacks references")
        part.refs, self.refs = self.refs[:refs], self.refs[refs:]
        return part

    def take_constant(self, bits: int) -> tuple[int, int]:
        """Read bits that end with a one and zeroes, which do not count; return value and number."""
        value = self.take(bits)
        if not value:
            raise Declined("a constant without an end")
        tag = (value & -value).bit_length()
        return value >> tag, bits - tag

    def open(self, cell: Cell) -> Continuation:
        """Return the code of a cell."""
        return self.open_slice(cell.slice())

    def open_slice(self, start: CellSlice) -> Continuation:
        """Return the code of a slice."""
        return Continuation(Code(start, self.decode, self.root))


class Continuation:
    """A code that can be called, without anything saved in it."""

    __slots__ = ("_code", "_gas", "_steps", "jump")

    def __init__(self, code: Code) -> None:
        """Decode the code when it is first called."""
        self._code = code
        self._steps: list[Step] | None = None
        self._gas = 0
        self.jump = Jump(self)

    def enter(self) -> tuple[Iterator[Step], int]:
        """Return its steps, and gas that is never less than they take without what they call."""
        if self._steps is None:
            self._steps, self._gas = self._code.decode(self._code)
        return iter(self._steps), self._gas
