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

_COLUMNS = ("hash", "cell", "refs")
_HASH_BYTES = 32


class CellFile:
    """The rows of one file, in memory."""

    def __init__(self, rows: pa.Table) -> None:
        """Take the columns of cells, sorted by hash."""
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
        self._lake_dir = lake_dir
        self._listed = tuple(files)
        self.files: list[CellFile] | None = None
        """The files in memory, once they are read."""

    def read(self) -> list[CellFile]:
        """Return the files, the largest first; LakeCorrupt: one is damaged."""
        if self.files is None:
            with _lock:
                opened = {
                    file.sha256: _kept.get(file.sha256)
                    or CellFile(read_rows(self._lake_dir, file, _COLUMNS))
                    for file in sorted(self._listed, key=lambda file: -file.rows)
                }
                _kept.clear()
                _kept.update(opened)
            self.files = [*opened.values()]
        return self.files

    def find(self, hashes: Iterable[bytes]) -> dict[bytes, PackedCell]:
        """Return the cells with these hashes in the snapshot; LakeCorrupt: a file is damaged."""
        files = self.read()
        pairs = (
            (key, next(filter(None, (file.find(key) for file in files)), None)) for key in hashes
        )
        return {key: cell for key, cell in pairs if cell is not None}


_lock = threading.Lock()
_kept: dict[str, CellFile] = {}
"""The files of the snapshot read last, by digest."""


def open_cells(snapshot: Snapshot, settings: LakeSettings) -> CellStore | None:
    """Return the cells of a snapshot; None if there are too many, or they are damaged."""
    files = snapshot.files[STATE_CELLS.name]
    is_large = sum(file.rows for file in files) > settings.cells_in_memory
    is_damaged = STATE_CELLS.name in snapshot.damaged
    return None if is_large or is_damaged else CellStore(snapshot.lake_dir, files)
