"""Code: bits and references that are decoded into steps when they first run.

A step receives the stack and returns None or a signal: a Continuation is called, a Jump replaces
the current continuation, RETURN ends it, and an iterator of steps runs like a called continuation.
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
    """Replaces the current continuation with another."""

    __slots__ = ("target",)

    def __init__(self, target: Continuation) -> None:
        """Jump to ``target``."""
        self.target = target


class Return:
    """Ends the current continuation."""


RETURN = Return()

Step = Callable[[Stack], "Signal"]


Signal = Union["Continuation", Jump, Return, Iterator[Step], None]
Decode = Callable[["Code"], "tuple[list[Step], int]"]


class Code:
    """Bits and references of a code; reading past the end raises Declined."""

    __slots__ = ("_value", "bits_left", "decode", "refs", "root", "tree")

    def __init__(self, start: CellSlice, decode: Decode, root: Continuation | None = None) -> None:
        """Take the rest of a slice.

        Args:
            start: Slice with the code.
            decode: Decodes code into steps and adds up their gas.
            root: Start of the whole code; None if ``start`` is it.
        """
        self.tree: CellTree = start.tree
        self.bits_left = start.bits_left
        self._value = start.peek_uint(start.bits_left)
        self.refs = self.tree.links[start.cell][start.ref :]
        self.decode = decode
        self.root = root or Continuation(self)

    def peek(self, bits: int) -> int:
        """Return an unsigned integer without advancing, padded with zeroes after the last bit."""
        left = self.bits_left - bits
        value = self._value >> left if left >= 0 else self._value << -left
        return value & ((1 << bits) - 1)

    def take(self, bits: int) -> int:
        """Read an unsigned integer."""
        left = self.bits_left - bits
        if left < 0:
            raise Declined("truncated instruction")
        self.bits_left = left
        return self._value >> left & ((1 << bits) - 1)

    def take_signed(self, bits: int) -> int:
        """Read a signed integer."""
        value = self.take(bits)
        return value - (1 << bits) if value >> bits - 1 else value

    def take_ref(self) -> Cell:
        """Read a reference."""
        if not self.refs:
            raise Declined("instruction with a missing reference")
        first, self.refs = self.refs[0], self.refs[1:]
        return Cell(self.tree, first)

    def take_part(self, bits: int, refs: int) -> Code:
        """Read bits and references as code."""
        part = Code.__new__(Code)
        part.tree, part.decode, part.root = self.tree, self.decode, self.root
        part._value, part.bits_left = self.take(bits), bits  # noqa: SLF001 - the same class
        if len(self.refs) < refs:
            raise Declined("instruction with missing references")
        part.refs, self.refs = self.refs[:refs], self.refs[refs:]
        return part

    def take_constant(self, bits: int) -> tuple[int, int]:
        """Read bits up to a completion tag (a one and zeroes); return their value and number."""
        value = self.take(bits)
        if not value:
            raise Declined("constant without a completion tag")
        tag = (value & -value).bit_length()
        return value >> tag, bits - tag

    def open(self, cell: Cell) -> Continuation:
        """Return a cell as a continuation."""
        return self.open_slice(cell.slice())

    def open_slice(self, start: CellSlice) -> Continuation:
        """Return a slice as a continuation."""
        return Continuation(Code(start, self.decode, self.root))


class Continuation:
    """A code that can be called, without saved registers."""

    __slots__ = ("_code", "_gas", "_steps", "jump")

    def __init__(self, code: Code) -> None:
        """Create a continuation; the code is decoded on the first call."""
        self._code = code
        self._steps: list[Step] | None = None
        self._gas = 0
        self.jump = Jump(self)

    def enter(self) -> tuple[Iterator[Step], int]:
        """Return the steps, and an upper bound of their gas excluding the code that they call."""
        if self._steps is None:
            self._steps, self._gas = self._code.decode(self._code)
        return iter(self._steps), self._gas
