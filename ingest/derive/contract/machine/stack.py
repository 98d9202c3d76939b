"""The stack of the machine, its values, and the errors that end a run early.

An integer is an ``int``, null is None, a cell is Cell, a slice is CellSlice, a tuple is a
``tuple``, a builder is Builder, a continuation is Continuation of ``code``. Values are immutable:
instructions read from a copy of a slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.ingest.decode.cell.build import MAX_BITS, MAX_REFS, append_cell, graft_cell
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.stack import Cell

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.stack import Address

INTEGER_LIMIT = 1 << 256


class Declined(Exception):
    """The machine does not support something, or leaves it to the TVM."""


class Thrown(Exception):
    """The code throws or fails without a handler, and would do so in the TVM."""


class Builder(NamedTuple):
    """The content of a builder: its bits as one integer, their number, and its references."""

    value: int
    bits: int
    children: tuple[Cell, ...]

    def store(self, value: int, bits: int, children: tuple[Cell, ...] = ()) -> Builder:
        """Return the builder with bits and references appended; raise Thrown beyond the limits."""
        total, refs = self.bits + bits, self.children + children
        if total > MAX_BITS or len(refs) > MAX_REFS:
            raise Thrown("cell overflow")
        return Builder(self.value << bits | value, total, refs)


class Account(NamedTuple):
    """What a run may read: the account's address, data and code, and the network's version.

    ``code`` is the cell in the account's state, which may be a library cell; None leaves MYCODE to
    the TVM. ``global_version`` is ConfigParam 8; instructions added later throw.
    """

    address: Address
    data: Cell
    code: Cell | None = None
    global_version: int = 0


class Stack(list[Any]):
    """The values of a stack, top last, and the state of the run."""

    __slots__ = ("account", "planted", "variables")

    def __init__(self, values: tuple[Any, ...], account: Account, planted: dict[Cell, int]) -> None:
        """Create a stack from values, deepest first.

        Cells are built in the tree of the account's data. ``planted`` maps cells of other trees to
        their position in it.
        """
        super().__init__(values)
        self.account = account
        self.planted = planted
        self.variables: dict[int, Any] = {}

    def require(self, version: int) -> None:
        """Raise Thrown if the network's global version does not have an instruction yet."""
        if self.account.global_version < version:
            raise Thrown("invalid opcode")

    def need(self, count: int) -> None:
        """Raise Declined if there are fewer values."""
        if len(self) < count:
            raise Declined("stack underflow")

    def integer(self) -> int:
        """Pop an integer."""
        value = self.pop()
        if value.__class__ is not int:
            raise Declined("expected an integer")
        return value

    def number(self, limit: int) -> int:
        """Pop an integer from 0 to ``limit``."""
        value = self.integer()
        if not 0 <= value <= limit:
            raise Declined("integer out of range")
        return value

    def push_integer(self, value: int) -> None:
        """Push an integer; raise Thrown if it has more than 257 bits."""
        if not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
            raise Thrown("integer overflow")
        self.append(value)

    def slice(self) -> CellSlice:
        """Pop a slice, as a copy that may be advanced."""
        return self.start().copy()

    def start(self) -> CellSlice:
        """Pop a slice, which must not be advanced."""
        value = self.pop()
        if value.__class__ is not CellSlice:
            raise Declined("expected a slice")
        return value

    def cell(self) -> Cell:
        """Pop a cell."""
        value = self.pop()
        if value.__class__ is not Cell:
            raise Declined("expected a cell")
        return value

    def maybe_cell(self) -> Cell | None:
        """Pop a cell or null."""
        value = self.pop()
        if value is not None and value.__class__ is not Cell:
            raise Declined("expected a cell or null")
        return value

    def builder(self) -> Builder:
        """Pop a builder."""
        value = self.pop()
        if value.__class__ is not Builder:
            raise Declined("expected a builder")
        return value

    def end(self, builder: Builder) -> Cell:
        """Return the finished cell of a builder."""
        tree = self.account.data.tree
        children = tuple(
            child.root if child.tree is tree else self._plant(child) for child in builder.children
        )
        return Cell(tree, append_cell(tree, builder.value, builder.bits, children))

    def _plant(self, cell: Cell) -> int:
        if cell not in self.planted:
            self.planted[cell] = graft_cell(self.account.data.tree, cell.tree, cell.root)
        return self.planted[cell]


def move(start: CellSlice, left: int, refs: int = 0) -> CellSlice:
    """Return the slice advanced by ``refs`` references and to ``left`` remaining bits."""
    value, _ = start.bits()
    rest = CellSlice.at(start.tree, start.cell, value, left)
    rest.ref = start.ref + refs
    return rest


def list_refs(start: CellSlice) -> tuple[Cell, ...]:
    """Return the remaining references of a slice."""
    tree = start.tree
    return tuple(Cell(tree, child) for child in tree.links[start.cell][start.ref :])


def show_bits(start: CellSlice) -> tuple[int, int]:
    """Return the remaining bits as one integer, and their number."""
    return start.peek_uint(start.bits_left), start.bits_left
