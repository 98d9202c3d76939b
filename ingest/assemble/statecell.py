"""State cells by hash: those of the commit at hand, and those that the lake has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.assemble.memory import Memory
from tonlake.lake.file.values import iter_tuples
from tonlake.lake.log.reader import LogReader
from tonlake.lake.schema import STATE_CELLS

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from tonlake.ingest.settings import IngestSections
    from tonlake.lake.log.state import Commit, LogState

PackedCell = tuple[bytes, list[bytes]]
Cells = dict[bytes, PackedCell]
"""Packed cells, as ``state_cells`` keeps them: descriptors with data, and child hashes."""


class CellFinder:
    """Finds trees of cells in the lake and among rows about to be committed."""

    def __init__(
        self, lake_dir: Path, settings: IngestSections, log: LogReader | None = None
    ) -> None:
        """Look up in ``lake_dir``, which need not be there yet; ``log`` is read on."""
        self._most = most = settings.ingest.cached_rows
        self._log = log or LogReader(lake_dir)
        self._memory = Memory(lake_dir, settings.lake, STATE_CELLS.name, _find_in_lake, most=most)
        self._fresh_rows: pa.Table | None = None
        self._fresh: Cells = {}

    def close(self) -> None:
        """Close the lake."""
        self._memory.close()

    def find_trees(self, roots: set[bytes], fresh: pa.Table, *, in_lake: bool = True) -> Cells:
        """Find the cells under ``roots``, level by level, as far as they are known.

        ``fresh`` are rows of ``state_cells`` that the lake does not have yet; with ``in_lake``
        the lake is searched for what they lack.
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
            keys = {kid for _, kids in level.values() for kid in kids} - found.keys()
        return found

    def learn(self, fresh: pa.Table, commit: Commit) -> None:
        """Remember the cells of a commit that was made of rows asked about before it."""
        if fresh is self._fresh_rows or fresh.num_rows <= self._most:
            self._find_fresh(fresh, set())
            self._memory.learn(self._fresh, commit)
        self._fresh_rows, self._fresh = None, {}

    def _find_fresh(self, fresh: pa.Table, keys: set[bytes]) -> Cells:
        if fresh.num_rows > self._most:
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
