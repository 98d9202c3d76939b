"""State cells by hash: those of the commit at hand, and those that the lake has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import LakeNotFound
from lake.log import LogState
from lake.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from lake.settings import Settings

Cells = dict[bytes, tuple[bytes, list[bytes]]]
"""Packed cells, as ``state_cells`` keeps them: descriptors with data, and child hashes."""


class CellFinder:
    """Finds whole trees of cells for a run that is about to commit more of them."""

    def __init__(self, lake_dir: Path, settings: Settings) -> None:
        """Look up in ``lake_dir``, which need not be there yet."""
        self._lake_dir = lake_dir
        self._settings = settings
        self._opened: tuple[int, duckdb.DuckDBPyConnection] | None = None

    def find_trees(self, roots: set[bytes], fresh: pa.Table, *, in_lake: bool = True) -> Cells:
        """Find the cells under ``roots``, level by level, as far as they are known.

        ``fresh`` are rows of ``state_cells`` that the lake does not have yet; with ``in_lake``
        what they lack is looked up in the lake, too.
        """
        found: Cells = {}
        wanted = roots
        connection: duckdb.DuckDBPyConnection | None = None
        while wanted:
            level = _pick(fresh.filter(_is_in(fresh["hash"], wanted)))
            lacking = wanted - level.keys()
            if lacking and in_lake:
                connection = connection or self._open()
                level |= _find_in_lake(connection, lacking)
            found |= level
            wanted = {kid for _, kids in level.values() for kid in kids} - found.keys()
        return found

    def _open(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to the newest snapshot, or to nothing where there is no lake.

        It is kept as long as there is no newer one.
        """
        try:
            snapshot = open_snapshot(self._lake_dir, check_digests=False)
        except LakeNotFound:
            snapshot = Snapshot(self._lake_dir, LogState())
        if self._opened is None or self._opened[0] != snapshot.number:
            if self._opened is not None:
                self._opened[1].close()
            connection = snapshot.connect(self._settings, tables=["state_cells"])
            self._opened = snapshot.number, connection
        return self._opened[1]


def _find_in_lake(connection: duckdb.DuckDBPyConnection, wanted: set[bytes]) -> Cells:
    rows = connection.execute(
        "select hash, cell, refs from state_cells where hash in (select unnest($hashes))",
        {"hashes": sorted(wanted)},
    )
    return {row[0]: (row[1], row[2]) for row in rows.fetchall()}


def _is_in(hashes: pa.ChunkedArray, wanted: set[bytes]) -> pa.ChunkedArray:
    return pc.is_in(hashes, pa.array(sorted(wanted), hashes.type))


def _pick(rows: pa.Table) -> Cells:
    columns = (rows[name].to_pylist() for name in ("hash", "cell", "refs"))
    return {row[0]: (row[1], row[2]) for row in zip(*columns, strict=True)}
