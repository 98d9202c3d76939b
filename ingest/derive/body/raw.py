"""Raw cells: the rest of a cell, or a referenced cell."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.exotic import ORDINARY
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body.codec import Codec, Value, Work
from tonlake.ingest.derive.body.program import Op

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree

EMPTY_CELL = "empty_cell"


class Raw:
    """A raw cell inside a decoded body, before it is shown; ``level`` is its depth."""

    __slots__ = ("_place", "level", "tree")

    def __init__(self, tree: CellTree, place: int | CellSlice, level: int) -> None:
        """Create it from a cell, or from a slice with the rest of one."""
        self.tree = tree
        self._place = place
        self.level = level

    @property
    def cell(self) -> int:
        """The cell; the rest of a cell is stored as a new cell on first use."""
        if not isinstance(self._place, int):
            self._place = CellBuilder(self.tree).store_slice(self._place).end()
        return self._place

    def slice(self) -> CellSlice:
        """Return a reader at the start of the cell; raise BocError for an exotic one."""
        place = self._place
        return self.tree.slice(place) if isinstance(place, int) else place.copy()

    @property
    def is_empty(self) -> bool:
        """Whether the cell has neither bits nor references."""
        if not isinstance(self._place, int):
            return not (self._place.bits_left or self._place.refs_left)
        if self.is_exotic:
            return False
        return not (self.tree.bit_length(self._place) or self.tree.refs(self._place))

    @property
    def is_exotic(self) -> bool:
        """Whether the cell is exotic, so that its data cannot be read."""
        return isinstance(self._place, int) and self.tree.kind(self._place) != ORDINARY

    def show(self, work: Work) -> Value:
        """Return the bag of cells in base64, or the object of the empty cell."""
        if self.is_empty:
            return {"@type": EMPTY_CELL}
        bag = serialize_boc(self.tree, [self.cell])
        work.spend(len(bag))
        return b64encode(bag).decode()


class Rest(Codec):
    """``Cell`` and ``Any`` inline: the rest of the cell."""

    op = Op.REST

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the rest of the cell."""
        at_start = not source.pos and not source.ref
        place = source.cell if at_start else source.copy()
        source.skip(source.bits_left)
        source.ref += source.refs_left
        return Raw(source.tree, place, work.level)


class LinkedRaw(Codec):
    """``^Cell``: a referenced cell of any kind."""

    op = Op.LINKED_RAW

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the reference."""
        return Raw(source.tree, source.load_ref(), work.level + 1)
