"""State cells by hash: those of the commit at hand, and those that the lake has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import LakeNotFound
from lake.snapshot import open_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from lake.settings import Settings

Cells = dict[bytes, tuple[bytes, list[bytes]]]
"""Packed cells, as ``state_cells`` keeps them: descriptors with data, and child hashes."""


class CellFinder:
    """Finds whole trees of cells for a run that is about to commit more of them."""

    def __init__(self, lake_dir: Path, settings: Settings) -> None:
        """Look up in ``lake_dir``, which need not be there yet."""
        self._lake_dir = lake_dir
        self._settings = settings

    def find_trees(self, roots: set[bytes], fresh: pa.Table) -> Cells:
        """Find the cells under ``roots``, level by level, as far as they are known.

        ``fresh`` are rows of ``state_cells`` that the lake does not have yet.
        """
        found: Cells = {}
        wanted = roots
        while wanted:
            kind = fresh.schema.field("hash").type
            level = _pick(fresh.filter(pc.is_in(fresh["hash"], pa.array(sorted(wanted), kind))))
            level |= self._find_in_lake(wanted - level.keys())
            found |= level
            wanted = {kid for _, kids in level.values() for kid in kids} - found.keys()
        return found

    def _find_in_lake(self, wanted: set[bytes]) -> Cells:
        if not wanted:
            return {}
        try:
            snapshot = open_snapshot(self._lake_dir, check_digests=False)
        except LakeNotFound:
            return {}
        with snapshot.connect(self._settings) as connection:
            rows = connection.execute(
                "select hash, cell, refs from state_cells where hash in (select unnest($hashes))",
                {"hashes": sorted(wanted)},
            )
            return {row[0]: (row[1], row[2]) for row in rows.fetchall()}


def _pick(rows: pa.Table) -> Cells:
    columns = (rows[name].to_pylist() for name in ("hash", "cell", "refs"))
    return {row[0]: (row[1], row[2]) for row in zip(*columns, strict=True)}
