"""What every codec does, and the work one body may cost.

Values have the shape of TON Center's answers: integers as decimal text, bit strings as upper-case
hexadecimal text, constructors as objects with ``@type``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tonlake.ingest.derive.body.program import Op
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree
    from tonlake.ingest.derive.body.program import Program
    from tonlake.ingest.derive.body.raw import Raw

Value: TypeAlias = "bool | str | Raw | Object | list[Value]"
Object: TypeAlias = "dict[str, Value]"

NOTHING, SOMETHING = "nothing_from_maybe", "something_from_maybe"
"""``@type`` of ``Maybe``."""

MAX_LEVELS = 48
"""Most levels of cells that are taken apart, nested payloads included."""
_CELL_TRIALS = 4
_SPARE_CELLS = 1024
"""A body may visit each of its cells a few times, as layouts are tried, and this many more:
equal parts of a dictionary share one cell, but a few crafted cells could stand for 2^256 keys."""
_RAW_SHOWS = 2
_SPARE_BYTES = 4096
_SPARE_CELL_BYTES = 64
"""Raw cells may fill a few times the bytes of the body, and these more: each bag has its head."""


class Work:
    """Counts down what one body may still cost."""

    __slots__ = ("_cells", "_raw_bytes", "level")

    def __init__(self, tree: CellTree) -> None:
        """Begin with the full allowance of a body in a tree of its own."""
        self._cells = _CELL_TRIALS * tree.count + _SPARE_CELLS
        self._raw_bytes = _RAW_SHOWS * sum(map(len, tree.cells)) + _SPARE_BYTES
        self._raw_bytes += _SPARE_CELL_BYTES * tree.count
        self.level = 0

    def visit(self) -> None:
        """Account for one more cell; raises BodyError when it is one too many."""
        self._cells -= 1
        if self._cells < 0:
            raise BodyError("body whose layouts visit its cells too often")

    def enter(self) -> None:
        """Step into a cell; raises BodyError when that is one level too many."""
        self.visit()
        self.level += 1
        if self.level > MAX_LEVELS:
            raise BodyError(f"body of more than {MAX_LEVELS} levels")

    def leave(self) -> None:
        """Step back to the parent cell."""
        self.level -= 1

    def spend(self, raw_bytes: int) -> None:
        """Account for a cell that is shown raw; raises BodyError when it is one too many."""
        self._raw_bytes -= raw_bytes
        if self._raw_bytes < 0:
            raise BodyError("body that shows its cells too often")


class Codec(ABC):
    """Reads one type from a slice."""

    op: ClassVar[Op] = Op.DECLINED
    """What the native decoder calls it."""

    @abstractmethod
    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read one value; raises BocError or BodyError when the bits are no such value."""

    def arguments(self, program: Program) -> Sequence[int] | None:
        """Return the arguments of this codec's node, as native/decode.h lists them.

        None: the native decoder cannot follow it.
        """
        del program
        return ()
