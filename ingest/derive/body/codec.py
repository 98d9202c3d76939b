"""The base class of codecs, and the work limits of decoding a body.

Values have the shape of TON Center's: integers as decimal text, bit strings as uppercase
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
"""Maximum depth of cells that are decoded, including nested payloads."""
_CELL_TRIALS = 4
_SPARE_CELLS = 1024
"""A body may visit each of its cells a few times, as layouts are tried, plus this number:
equal parts of a dictionary share one cell, but a few crafted cells could represent 2^256 keys."""
_RAW_SHOWS = 2
_SPARE_BYTES = 4096
_SPARE_CELL_BYTES = 64
"""Raw cells may take a few times the bytes of the body, plus these: each bag has a header."""


class Work:
    """The remaining work that decoding one body may take."""

    __slots__ = ("_cells", "_raw_bytes", "level")

    def __init__(self, tree: CellTree) -> None:
        """Create the full allowance for a body in its own tree."""
        self._cells = _CELL_TRIALS * tree.count + _SPARE_CELLS
        self._raw_bytes = _RAW_SHOWS * sum(map(len, tree.cells)) + _SPARE_BYTES
        self._raw_bytes += _SPARE_CELL_BYTES * tree.count
        self.level = 0

    def visit(self) -> None:
        """Count one more cell; raise BodyError above the limit."""
        self._cells -= 1
        if self._cells < 0:
            raise BodyError("the layouts visit the cells of the body too often")

    def enter(self) -> None:
        """Enter a cell; raise BodyError above the limit of depth."""
        self.visit()
        self.level += 1
        if self.level > MAX_LEVELS:
            raise BodyError(f"the body has more than {MAX_LEVELS} levels")

    def leave(self) -> None:
        """Return to the parent cell."""
        self.level -= 1

    def spend(self, raw_bytes: int) -> None:
        """Count a cell that is shown raw; raise BodyError above the limit."""
        self._raw_bytes -= raw_bytes
        if self._raw_bytes < 0:
            raise BodyError("the body shows its cells too often")


class Codec(ABC):
    """Reads one type from a slice."""

    op: ClassVar[Op] = Op.DECLINED
    """The operation of the native decoder."""

    @abstractmethod
    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read one value; raise BocError or BodyError if the bits do not encode one."""

    def arguments(self, program: Program) -> Sequence[int] | None:
        """Return the arguments of this codec's node, as listed in native/decode.h.

        None if the native decoder does not support it.
        """
        del program
        return ()
