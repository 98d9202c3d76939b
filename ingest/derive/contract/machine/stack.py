"""The stack of the machine, its values, and how a run ends early.

An integer is an ``int``, null is None, a cell is Cell, a slice is CellSlice, a tuple is a
``tuple``, a builder is Builder, a continuation is Continuation of ``code``. No value is ever
changed: what is read off a slice is read off a copy.
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
    """Something that the machine does not know, or leaves to the TVM."""


class Thrown(Exception):
    """The code throws, or fails, where nothing catches it: so does the TVM."""


class Builder(NamedTuple):
    """What a builder holds: its bits as one integer, their number, and its references."""

    value: int
    bits: int
    children: tuple[Cell, ...]

    def store(self, value: int, bits: int, children: tuple[Cell, ...] = ()) -> Builder:
        """Return it with bits and references behind its own; raises Thrown beyond the limits."""
        total, refs = self.bits + bits, self.children + children
        if total > MAX_BITS or len(refs) > MAX_REFS:
            raise Thrown("cell overflow")
        return Builder(self.value << bits | value, total, refs)


class Account(NamedTuple):
    """What a run may know of the account: its address and its data."""

    address: Address
    data: Cell


class Stack(list[Any]):
    """Values, the top one last, and what belongs to a run beside them."""

    __slots__ = ("account", "planted", "variables")

    def __init__(self, values: tuple[Any, ...], account: Account, planted: dict[Cell, int]) -> None:
        """Begin with values, the deepest first.

        Cells are built in the tree of the account's data. ``planted`` has the places there of
        cells of other trees.
        """
        super().__init__(values)
        self.account = account
        self.planted = planted
        self.variables: dict[int, Any] = {}

    def need(self, count: int) -> None:
        """Raise Declined where there are fewer values."""
        if len(self) < count:
            raise Declined("stack underflow")

    def integer(self) -> int:
        """Take an integer off."""
        value = self.pop()
        if value.__class__ is not int:
            raise Declined("no integer")
        return value

    def number(self, limit: int) -> int:
        """Take an integer off that is not negative, and at most ``limit``."""
        value = self.integer()
        if not 0 <= value <= limit:
            raise Declined("an integer out of range")
        return value

    def push_integer(self, value: int) -> None:
        """Push an integer; raises Thrown for one of more than 257 bits."""
        if not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
            raise Thrown("integer overflow")
        self.append(value)

    def slice(self) -> CellSlice:
        """Take a slice off, as a copy that can be read on."""
        return self.start().copy()

    def start(self) -> CellSlice:
        """Take a slice off, which is not to be moved."""
        value = self.pop()
        if value.__class__ is not CellSlice:
            raise Declined("no slice")
        return value

    def cell(self) -> Cell:
        """Take a cell off."""
        value = self.pop()
        if value.__class__ is not Cell:
            raise Declined("no cell")
        return value

    def maybe_cell(self) -> Cell | None:
        """Take a cell or null off."""
        value = self.pop()
        if value is not None and value.__class__ is not Cell:
            raise Declined("neither cell nor null")
        return value

    def builder(self) -> Builder:
        """Take a builder off."""
        value = self.pop()
        if value.__class__ is not Builder:
            raise Declined("no builder")
        return value

    def end(self, builder: Builder) -> Cell:
        """Return the cell that a builder ends in."""
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
    """Return a slice behind what was read: ``left`` bits and all but ``refs`` references stay."""
    value, _ = start.bits()
    rest = CellSlice.at(start.tree, start.cell, value, left)
    rest.ref = start.ref + refs
    return rest


def list_refs(start: CellSlice) -> tuple[Cell, ...]:
    """Return the references that are left in a slice."""
    tree = start.tree
    return tuple(Cell(tree, child) for child in tree.links[start.cell][start.ref :])


def show_bits(start: CellSlice) -> tuple[int, int]:
    """Return the bits that are left as one integer, and their number."""
    return start.peek_uint(start.bits_left), start.bits_left
