"""Assembles cell trees from ``state_cells``: code and data of accounts, and libraries."""

import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tonlake.api.text.encoding import encode_bytes
from tonlake.api.text.native import NATIVE
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.decode.cell.writer import add_crc32c, serialize_depth_first
from tonlake.ingest.errors import MissingCell
from tonlake.lake.cache import Cache
from tonlake.lake.index.cells import PackedCell
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
    lake_dir, number = reader.snapshot.lake_dir, reader.snapshot.number
    with _LOCK:
        kept = {cell_hash: _KEPT.get((lake_dir, cell_hash)) for cell_hash in roots}
    found = {key: each[1] for key, each in kept.items() if each and each[0] <= number}
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
    with _LOCK:
        for cell_hash, boc in bags.items():
            _KEPT.put((lake_dir, cell_hash), (number, boc))
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


_LOCK = threading.Lock()
_KEPT: Cache[tuple[Path, bytes], tuple[int, bytes]] = Cache(
    CACHED_BYTES, lambda _key, kept: OVERHEAD_BYTES + len(kept[1])
)
"""Complete trees by lake and hash, each with the first snapshot known to have it."""
