"""Cells of account states by hash, from files held in memory: for lakes with few cells.

Files of ``state_cells`` are sorted by hash, so each can be searched directly. They are read when
the first cell is requested, and those that the next snapshot has as well are not read again.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from tonlake.lake.file.rows import item_bytes, read_rows
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import STATE_CELLS
from tonlake.lake.settings import LakeSettings

PackedCell = tuple[bytes, list[bytes]]
"""Descriptors and data of a cell, and the hashes of its children."""

_HASH_BYTES = 32


class CellFile:
    """The rows of one file, in memory."""

    def __init__(self, rows: pa.Table) -> None:
        """Take ``hash``, ``cell`` and ``refs``, sorted by hash."""
        joined = rows.combine_chunks()
        self._cells, self._refs = joined["cell"].combine_chunks(), joined["refs"].combine_chunks()
        self._hashes = item_bytes(joined["hash"])
        self._places = range(rows.num_rows)

    def find(self, cell_hash: bytes) -> PackedCell | None:
        """Return the cell with a hash, or None."""
        at = bisect_left(self._places, cell_hash, key=self._hash_at)
        if at == len(self._places) or self._hash_at(at) != cell_hash:
            return None
        return self._cells[at].as_py(), self._refs[at].as_py()

    def _hash_at(self, at: int) -> bytes:
        return bytes(self._hashes[at * _HASH_BYTES : (at + 1) * _HASH_BYTES])


class CellStore:
    """The cells of one snapshot."""

    def __init__(self, lake_dir: Path, files: Iterable[DataFile]) -> None:
        """Take the files; nothing is read yet."""
        self._lake_dir = lake_dir
        self._listed = tuple(files)

    def find(self, hashes: Iterable[bytes]) -> dict[bytes, PackedCell]:
        """Return the cells with these hashes in the snapshot; LakeCorrupt: a file is damaged."""
        files = _kept.open(self._lake_dir, self._listed)
        found = {
            each: next(filter(None, (file.find(each) for file in files)), None) for each in hashes
        }
        return {each: cell for each, cell in found.items() if cell is not None}


class _Kept:
    """The files of the snapshot used last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[tuple[Path, str], CellFile] = {}

    def open(self, lake_dir: Path, listed: Iterable[DataFile]) -> list[CellFile]:
        """Return files in memory, the largest first, reading those that are missing."""
        by_key = {(lake_dir, file.sha256): file for file in sorted(listed, key=lambda f: -f.rows)}
        files = self._files
        if not by_key.keys() <= files.keys():
            with self._lock:
                files = {
                    key: self._files.get(key)
                    or CellFile(read_rows(lake_dir, file, ("hash", "cell", "refs")))
                    for key, file in by_key.items()
                }
                self._files = files
        return [files[key] for key in by_key]


_kept = _Kept()


def open_cells(snapshot: Snapshot, settings: LakeSettings) -> CellStore | None:
    """Return the cells of a snapshot; None if there are too many, or they are damaged."""
    files = snapshot.files[STATE_CELLS.name]
    if STATE_CELLS.name in snapshot.damaged:
        return None
    if sum(file.rows for file in files) > settings.cells_in_memory:
        return None
    return CellStore(snapshot.lake_dir, files)
