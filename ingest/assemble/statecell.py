"""Finds state cells by hash in the current commit and in the lake; caches lake rows by key.

Opening a lake takes far longer than a query, and commits mostly need keys of earlier commits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.settings import IngestSections
from tonlake.lake.duck.connection import connect
from tonlake.lake.file.rows import iter_tuples
from tonlake.lake.log.ranges import Range, merge_ranges, subtract_ranges
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import Commit, DataFile, LogReader, LogState, Undoing
from tonlake.lake.schema import STATE_CELLS
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

Ask = Callable[["DuckDBPyConnection", set[Key]], Mapping[Key, Value]]
"""Queries a lake for the values of keys; unknown keys are omitted."""


class LakeCache(Generic[Key, Value]):
    """Caches values of one table by key; holds at most twice ``most`` values."""

    def __init__(
        self,
        lake_dir: Path,
        settings: LakeSettings,
        table: str,
        ask: Ask[Key, Value],
        *,
        most: int,
        lasts: bool = False,
    ) -> None:
        """Start empty; the lake need not exist yet.

        ``lasts`` means that new blocks add values but never change them, like cells by hash.
        """
        self._lake_dir = lake_dir
        self._settings = settings
        self._table = table
        self._ask = ask
        self._most = most
        self._lasts = lasts
        self._asked: dict[Key, Value | None] = {}
        self._recent: dict[Key, Value] = {}
        self._connection: DuckDBPyConnection | None = None
        self._number = 0
        self._content: tuple[tuple[Range, ...], tuple[Undoing, ...]] = ((), ())
        self._files: tuple[DataFile, ...] = ()

    def close(self) -> None:
        """Close the connection to the lake."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._settle()

    def _settle(self) -> None:
        """Treat values of recent commits as known in the lake, which is reopened with them."""
        self._asked |= self._recent
        self._recent.clear()
        self._forget_oldest()

    def find(self, keys: set[Key], state: LogState) -> dict[Key, Value]:
        """Return the values of keys in a lake; unknown keys are omitted."""
        self._follow(state)
        found: dict[Key, Value] = {}
        unknown: set[Key] = set()
        for key in keys:
            if key in self._recent:
                found[key] = self._recent[key]
            elif key in self._asked:
                value = self._asked[key] = self._asked.pop(key)
                if value is not None:
                    found[key] = value
            else:
                unknown.add(key)
        if unknown and state.number:
            new = self._look_up(unknown, state)
            self._asked |= {key: new.get(key) for key in unknown}
            self._forget_oldest()
            found |= new
        return found

    def learn(self, values: Mapping[Key, Value], commit: Commit) -> None:
        """Add the values of a commit that was made after the last query."""
        ranges, undoings = self._content
        new = (commit.first_mc_seqno, commit.last_mc_seqno)
        self._content = merge_ranges((*ranges, new)), undoings
        self._files += tuple(file for file in commit.added if file.table == self._table)
        for key in values:
            self._asked.pop(key, None)
        self._recent |= values
        if len(self._recent) > self._most:
            self.close()

    def _follow(self, state: LogState) -> None:
        """Drop values changed by other processes; close the lake if its files were replaced."""
        if state.number == self._number:
            return
        self._number = state.number
        content = state.known_ranges, state.undoings
        if content != self._content:
            self.close()
            self._asked = self._list_lasting(content)
            self._content = content
        files = state.by_table.get(self._table, ())
        if files != self._files:
            self.close()
            self._files = files

    def _list_lasting(
        self, content: tuple[tuple[Range, ...], tuple[Undoing, ...]]
    ) -> dict[Key, Value | None]:
        """Return the values that stay valid: lasting ones, if the lake only gained blocks."""
        (before, undoings), (after, undoings_after) = self._content, content
        if not self._lasts or undoings != undoings_after or subtract_ranges(before, after):
            return {}
        return {key: value for key, value in self._asked.items() if value is not None}

    def _look_up(self, keys: set[Key], state: LogState) -> Mapping[Key, Value]:
        """Query the lake for keys that are not cached."""
        return self._ask(self._open(state), keys)

    def _open(self, state: LogState) -> DuckDBPyConnection:
        """Return a connection to the lake as of its opening; later rows are in ``_recent``."""
        if self._connection is None:
            self._settle()
            snapshot = Snapshot(self._lake_dir, state)
            self._connection = connect(snapshot, self._settings, tables=[self._table])
        return self._connection

    def _forget_oldest(self) -> None:
        for key in list(islice(self._asked, max(0, len(self._asked) - self._most))):
            del self._asked[key]


MANY_ROWS = 10_000
"""With more rows than this, cells are filtered one lookup at a time unless many are needed."""

MANY_ASKED = 1 / 4
"""Share of the rows above which cells count as many."""

PackedCell = tuple[bytes, list[bytes]]
Cells = dict[bytes, PackedCell]
"""Packed cells, as in ``state_cells``: descriptors with data, and child hashes."""


class CellFinder:
    """Finds trees of cells in the lake and among rows that are about to be committed."""

    def __init__(
        self, lake_dir: Path, settings: IngestSections, log: LogReader | None = None
    ) -> None:
        """Look up cells in ``lake_dir``, which need not exist yet; ``log`` reads its log."""
        self._most = most = settings.ingest.cached_rows
        self._log = log or LogReader(lake_dir)
        self._memory = LakeCache(
            lake_dir, settings.lake, STATE_CELLS.name, _find_in_lake, most=most, lasts=True
        )
        self._fresh_rows: pa.Table | None = None
        self._fresh: Cells = {}

    def close(self) -> None:
        """Close the connection to the lake."""
        self._memory.close()

    def find_trees(self, roots: set[bytes], fresh: pa.Table, *, in_lake: bool = True) -> Cells:
        """Return the cells under ``roots``, as far as they are known, level by level.

        They are searched in ``fresh``, rows of ``state_cells`` to be committed, then in the lake.
        """
        found: Cells = {}
        keys = set(roots)
        state: LogState | None = None
        while keys:
            level = self._find_fresh(fresh, keys)
            lacking = keys - level.keys()
            if lacking and in_lake:
                state = state or self._log.read()
                level |= self._memory.find(lacking, state)
            found |= level
            keys = {child for _, children in level.values() for child in children} - found.keys()
        return found

    def learn(self, fresh: pa.Table, commit: Commit) -> None:
        """Cache the cells of a commit whose rows were searched before."""
        if fresh is self._fresh_rows or fresh.num_rows <= self._most:
            cells = self._fresh if fresh is self._fresh_rows else _pick(fresh)
            self._memory.learn(cells, commit)
        self._fresh_rows, self._fresh = None, {}

    def _find_fresh(self, fresh: pa.Table, keys: set[bytes]) -> Cells:
        are_many = len(keys) > MANY_ASKED * fresh.num_rows
        keeps = fresh is self._fresh_rows or are_many
        if fresh.num_rows > (self._most if keeps else MANY_ROWS):
            hashes = pa.array(sorted(keys), pa.binary(32))
            return _pick(fresh.filter(pc.is_in(fresh["hash"], hashes)))
        if fresh is not self._fresh_rows:
            self._fresh_rows, self._fresh = fresh, _pick(fresh)
        known = self._fresh
        return {each: known[each] for each in keys if each in known}


def _find_in_lake(connection: duckdb.DuckDBPyConnection, keys: set[bytes]) -> Cells:
    rows = connection.execute(
        "select hash, cell, refs from state_cell_copies where hash in (select unnest($hashes))",
        {"hashes": sorted(keys)},
    )
    return {row[0]: (row[1], row[2]) for row in rows.fetchall()}


def _pick(rows: pa.Table) -> Cells:
    return {row[0]: (row[1], row[2]) for row in iter_tuples(rows, ("hash", "cell", "refs"))}
