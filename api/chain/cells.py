"""Assembles cell trees from ``state_cells``: code and data of accounts, and libraries."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tonlake.api.text.encoding import encode_bytes
from tonlake.api.text.native import NATIVE
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.decode.cell.writer import add_crc32c, serialize_depth_first
from tonlake.ingest.errors import MissingCell
from tonlake.lake.index.cells import PackedCell
from tonlake.lake.log.snapshot import Snapshot
from tonlake.queries.reader import Reader

CACHED_CELLS = 4096
_CRC_FLAG = 0x40  # serialized_boc: has_crc32c
_FLAGS_AT = 4


def read_cell_trees(reader: Reader, hashes: Iterable[bytes | None]) -> dict[bytes, bytes]:
    """Return complete cell trees by hash, as bags of cells with checksum; None is skipped."""
    roots = {cell_hash for cell_hash in hashes if cell_hash is not None}
    found = _CACHE.get_many(reader.snapshot, roots)
    missing = sorted(roots - found.keys())
    if not missing:
        return found
    cells: dict[bytes, PackedCell] = {}
    wanted = set(missing)
    while wanted:  # descendants, level by level
        rows = reader.rows("cells", hashes=sorted(wanted))
        cells |= {row["hash"]: (row["cell"], row["refs"]) for row in rows}
        wanted = {child for row in rows for child in row["refs"]} - cells.keys()
    bags: dict[bytes, bytes] = {}
    for cell_hash in missing:
        with suppress(MissingCell):
            bags[cell_hash] = assemble_boc(cell_hash, cells, crc32c=True)
    _CACHE.put_many(reader.snapshot, bags)
    return found | bags


def add_checksum(boc: bytes) -> bytes:
    """Return a bag of cells with CRC-32C, as TON Center returns them; unchanged if it has one."""
    if boc[_FLAGS_AT] & _CRC_FLAG:
        return boc
    return add_crc32c(boc) if NATIVE is None else bytes(NATIVE.add_crc32c(boc))


@lru_cache(CACHED_CELLS)
def write_depth_first(boc: bytes) -> str:
    """Serialise a bag with one root depth first and without CRC, as base64, as TON Center does."""
    tree = parse_boc(boc)
    return encode_bytes(serialize_depth_first(tree, tree.roots[0]))


class _Cache:
    """An LRU cache of complete trees, each for the snapshot it was found in and later ones."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._cells: OrderedDict[tuple[Path, bytes], tuple[int, bytes]] = OrderedDict()

    def get_many(self, snapshot: Snapshot, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        found = {}
        with self._lock:
            for cell_hash in hashes:
                key = (snapshot.lake_dir, cell_hash)
                number, boc = self._cells.get(key, (snapshot.number + 1, b""))
                if number <= snapshot.number:
                    self._cells.move_to_end(key)
                    found[cell_hash] = boc
        return found

    def put_many(self, snapshot: Snapshot, cells: Mapping[bytes, bytes]) -> None:
        with self._lock:
            for cell_hash, boc in cells.items():
                self._cells[snapshot.lake_dir, cell_hash] = (snapshot.number, boc)
            while len(self._cells) > self._size:
                self._cells.popitem(last=False)


_CACHE = _Cache(CACHED_CELLS)
