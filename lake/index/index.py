"""What may answer questions about one snapshot without SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.index.opening import open_segments
from tonlake.lake.index.rowgroup.cache import gather
from tonlake.lake.index.rowgroup.cells import CellStore, open_cells
from tonlake.lake.index.segment.native import NATIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.lake.index.rowgroup.predicate import Bounds
    from tonlake.lake.index.segment.contracts import RunTable
    from tonlake.lake.index.segments import Segments
    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.settings import LakeSettings

Row = dict[str, Any]


class Declined(Exception):
    """The index cannot answer this question, or only slowly."""


class Index:
    """The accelerators of one snapshot; each declines where the snapshot does not have it."""

    def __init__(
        self,
        snapshot: Snapshot,
        lookups: Segments | None = None,
        cells: CellStore | None = None,
        *,
        may_read: bool = True,
    ) -> None:
        """Take what there is; without ``may_read`` only memory and mapped segments are used."""
        self.snapshot = snapshot
        self._segments, self._cells, self._may_read = lookups, cells, may_read

    def without_files(self) -> Index:
        """Return the same index for readers that cannot wait for files."""
        return Index(self.snapshot, self._segments, may_read=False)

    @property
    def segments(self) -> Segments:
        """The segments, complete for the snapshot.

        Raises:
            Declined: there are none.
        """
        if self._segments is None:
            raise Declined
        return self._segments

    @property
    def traces(self) -> Segments:
        """The segments, where what they hold of traces is current.

        Raises:
            Declined: it is not, or there are none.
        """
        if self._segments is None or self._segments.stale_traces:
            raise Declined
        return self._segments

    @property
    def cells(self) -> CellStore:
        """The cells of account states in memory.

        Raises:
            Declined: they are too many, or damaged.
        """
        if self._cells is None:
            raise Declined
        return self._cells

    def tables(self, name: str) -> list[RunTable]:
        """Return a table of contracts or transfers, segment by segment.

        Raises:
            Declined: the segments do not have it, or it is not current.
        """
        found = self.segments.list_tables(name)
        if found is None:
            raise Declined
        return found

    def gather(self, table: str, columns: Sequence[str], bounds: Mapping[str, Bounds]) -> list[Row]:
        """Return the rows of a table within bounds from decoded row groups, in no order.

        Raises:
            Declined: too much would have to be decoded.
        """
        found = gather(self.snapshot, table, columns, bounds) if self._may_read else None
        if found is None:
            raise Declined
        return found


def open_index(snapshot: Snapshot, settings: LakeSettings) -> Index | None:
    """Return the index of a snapshot; None without the extension: SQL answers all."""
    if NATIVE is None:
        return None
    return Index(snapshot, open_segments(snapshot, settings), open_cells(snapshot, settings))
