"""Caches decoded row groups of data files, for exact queries of few rows in few groups.

A SQL query takes milliseconds before it reads anything. Files never change, so a decoded row group
is valid for every snapshot with its file; the most recently used ones are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.index.declined import Declined
from tonlake.lake.index.rowgroup.decoded import Decoded
from tonlake.lake.index.rowgroup.footer import Footer
from tonlake.lake.index.rowgroup.predicate import bracket, may_hold
from tonlake.lake.index.rowgroup.selection import Selection
from tonlake.lake.log.place import read_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tonlake.lake.index.rowgroup.footer import Size
    from tonlake.lake.index.rowgroup.predicate import Bounds
    from tonlake.lake.log.snapshot import Snapshot

KEPT_BYTES = 96 << 20
MAX_GROUP_BYTES = 24 << 20
"""Larger row groups are never decoded."""

SMALL_ROWS = 2_000
"""Row groups of at most this many rows are decoded at first use, which costs no more than SQL."""

MAX_GROUPS = 32
"""A query that needs more row groups is left to SQL."""

SMALL_SHARE = 1 / 16
"""Minimum weight of a small row group in units of a large one: SQL also opens file by file."""

MAX_ROWS = 2_000
"""A query with more result rows is left to SQL."""

MAX_SELECTED = 50_000
"""A query that selects more rows, to read some columns of all, is left to SQL."""

KEPT_FOOTERS, KEPT_REQUESTS = 4096, 256
FEW_FOOTERS = 64
"""Up to this many footers, deleted files are not looked for."""

_NO_END = 1 << 32

Row = dict[str, Any]
Group = tuple[str, int]
"""Path of a file, and the number of a row group in it."""


class RowGroups:
    """The most recently used row groups, by file and number, within a limit of bytes."""

    def __init__(self, max_bytes: int) -> None:
        """Keep at most ``max_bytes`` of decoded columns."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._footers: OrderedDict[str, Footer] = OrderedDict()
        self._groups: OrderedDict[Group, Decoded] = OrderedDict()
        self._requested: OrderedDict[Group, None] = OrderedDict()
        self._bytes = 0
        self._many_footers = FEW_FOOTERS

    @property
    def size_bytes(self) -> int:
        """Bytes of all cached columns."""
        return self._bytes

    def read(
        self, path: str, bounds: Mapping[str, Bounds], most: float, *, may_read: bool = True
    ) -> list[Decoded] | None:
        """Return the row groups of a file that may have rows within bounds, with all columns.

        Return None if they weigh more than ``most``, one is too large, or a large one is used for
        the first time; without ``may_read``, also if the file would have to be read.
        """
        footer = self._open(path)
        if not (may_read or footer.knows(bounds)):
            return None
        numbers = footer.find(bounds)
        if sum(_weigh(footer.sizes[number][0]) for number in numbers) > most:
            return None
        find = self._decode if may_read else self._find
        groups = [find(path, number, footer.sizes[number]) for number in numbers]
        found = [group for group in groups if group is not None]
        return found if len(found) == len(groups) else None

    def count(self, path: str, bounds: Mapping[str, Bounds]) -> int:
        """Return the number of rows in row groups of a file that may have rows within bounds."""
        footer = self._open(path)
        return sum(footer.sizes[number][0] for number in footer.find(bounds))

    def _open(self, path: str) -> Footer:
        with self._lock:
            footer = self._footers.get(path)
        if footer is None:
            footer = Footer(path)
            with self._lock:
                self._footers[path] = footer
                while len(self._footers) > KEPT_FOOTERS:
                    self._footers.popitem(last=False)
        return footer

    def _find(self, path: str, number: int, _size: Size) -> Decoded | None:
        key = path, number
        with self._lock:
            if key in self._groups:
                self._groups.move_to_end(key)
            return self._groups.get(key)

    def _decode(self, path: str, number: int, size: Size) -> Decoded | None:
        found = self._find(path, number, size)
        if found is not None:
            return found
        key = path, number
        with self._lock:
            is_known = key in self._requested
            self._requested[key] = None
            while len(self._requested) > KEPT_REQUESTS:
                self._requested.popitem(last=False)
        rows, size_bytes = size
        if size_bytes > MAX_GROUP_BYTES or not (is_known or rows <= SMALL_ROWS):
            return None
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            group = Decoded(file.read_row_group(number, use_threads=False))
        with self._lock:
            if key not in self._groups:
                self._groups[key] = group
                self._bytes += group.size_bytes
            while self._bytes > self._max_bytes:
                self._bytes -= self._groups.popitem(last=False)[1].size_bytes
        return group

    def forget_gone(self, snapshot: Snapshot) -> None:
        """Drop files that a snapshot no longer has, once there may be many of them.

        A lake that follows a node has new files several times per second, which are soon merged.
        """
        if len(self._footers) <= self._many_footers:
            return
        folder = str(snapshot.lake_dir)
        live = {f"{folder}/{file.path}" for files in snapshot.files.values() for file in files}
        with self._lock:
            for path in self._footers.keys() - live:
                del self._footers[path]
            for key in [key for key in self._groups if key[0] not in live]:
                self._bytes -= self._groups.pop(key).size_bytes
            self._many_footers = max(FEW_FOOTERS, 2 * len(self._footers))


def _weigh(rows: int) -> float:
    """Return the weight of a row group of ``rows`` rows, in units of a large one."""
    return 1 if rows > SMALL_ROWS else max(SMALL_SHARE, rows / max(1, SMALL_ROWS))


_KEPT = RowGroups(KEPT_BYTES)
"""The row groups cached by this process."""


def select(
    snapshot: Snapshot,
    table: str,
    bounds: Mapping[str, Bounds],
    *,
    only_open: bool = False,
    may_read: bool = True,
    max_rows: int = MAX_SELECTED,
) -> Selection:
    """Select the rows of a table within bounds; ``only_open``: only those not final.

    Raises:
        Declined: too much would have to be decoded (without ``may_read``, anything), more than
            ``max_rows`` match, or a file is damaged.
    """
    if table in snapshot.damaged:
        raise Declined
    if any(None in bracket(bound) for bound in bounds.values()):
        return Selection()  # NULL equals nothing
    _KEPT.forget_gone(snapshot)
    parts: list[tuple[Decoded, list[int]]] = []
    left, is_whole, folder = float(MAX_GROUPS), True, str(snapshot.lake_dir)
    for path in _list_paths(snapshot, table, bounds, only_open=only_open):
        try:
            groups = _KEPT.read(f"{folder}/{path}", bounds, left, may_read=may_read)
            found = [(group, group.find(bounds)) for group in groups or ()]
        except (OSError, KeyError, OverflowError, pa.ArrowInvalid) as error:
            # SQL names the damaged file, or supports its older schema.
            raise Declined from error
        is_whole = is_whole and groups is not None
        left -= sum(_weigh(group.num_rows) for group in groups or ())
        max_rows -= sum(len(numbers) for _, numbers in found)
        if max_rows < 0:
            raise Declined
        parts += found
    snapshot.watch.check(table)
    if not is_whole:
        raise Declined
    return Selection(parts)


def gather(
    snapshot: Snapshot,
    table: str,
    columns: Sequence[str],
    bounds: Mapping[str, Bounds],
    *,
    only_open: bool = False,
    may_read: bool = True,
) -> list[Row]:
    """Return columns of the rows that ``select`` finds, a few thousand at most, unordered.

    Raises:
        Declined: as ``select``.
    """
    found = select(
        snapshot, table, bounds, only_open=only_open, may_read=may_read, max_rows=MAX_ROWS
    )
    return found.rows(columns)


def count_rows(snapshot: Snapshot, table: str, bounds: Mapping[str, Bounds]) -> int:
    """Return the number of rows in row groups of a table that may have rows within bounds.

    Files that cannot be read, or lack a column, count fully.
    """
    rows, by_path = 0, {file.path: file.rows for file in snapshot.files[table]}
    for path in _list_paths(snapshot, table, bounds, only_open=False):
        try:
            rows += _KEPT.count(f"{snapshot.lake_dir}/{path}", bounds)
        except (OSError, KeyError, pa.ArrowInvalid):
            rows += by_path[path]  # SQL names the damaged file, or supports its older schema
    return rows


def _list_paths(
    snapshot: Snapshot, table: str, bounds: Mapping[str, Bounds], *, only_open: bool
) -> Iterator[str]:
    """Yield the files that may have rows within bounds, judging by their paths."""
    bound = bounds.get("mc_seqno", (0, _NO_END))
    for file in snapshot.files[table]:
        place = read_place(file.path)
        # Rows of the zero state, of masterchain block 0, come with block 1.
        first = place.first if place.first > 1 else 0
        if place.is_open or (not only_open and may_hold((first, place.last), bound)):
            yield file.path
