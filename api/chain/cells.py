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

CACHED_BYTES = 64 << 20
"""Most bytes of cached trees: each past state of a large account has a tree of its own."""

OVERHEAD_BYTES = 400
"""Size of a cached tree beside its bytes."""

CACHED_TEXTS = 4096
TEXT_BYTES = 8 << 10
"""Longest bag whose text is cached; a longer one takes some 15 us a KiB."""

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


def write_depth_first(boc: bytes) -> str:
    """Serialise a bag with one root depth first and without CRC, as base64, as TON Center does."""
    write = _write_cached if len(boc) <= TEXT_BYTES else _write_cached.__wrapped__
    return write(boc)


@lru_cache(CACHED_TEXTS)
def _write_cached(boc: bytes) -> str:
    tree = parse_boc(boc)
    return encode_bytes(serialize_depth_first(tree, tree.roots[0]))


class _Cache:
    """An LRU cache of complete trees, each for the snapshot it was found in and later ones."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
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
                key = (snapshot.lake_dir, cell_hash)
                if key not in self._cells:  # the same hash is the same tree
                    self._bytes += OVERHEAD_BYTES + len(boc)
                self._cells[key] = (snapshot.number, boc)
            while self._bytes > self._max_bytes:
                _key, (_number, boc) = self._cells.popitem(last=False)
                self._bytes -= OVERHEAD_BYTES + len(boc)


_CACHE = _Cache(CACHED_BYTES)
