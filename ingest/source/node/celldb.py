"""Reads the node's ``celldb``: the cells of all shard states it keeps, by hash.

    32-byte cell hash              -> refcnt i32, d1, d2, data, references
    "desc" + base64(sha256(id))    -> db.celldb.value: block id, list links, root hash of its state
    "desczero"                     -> head of that list

A reference is a level mask, then hashes (lowest level first; the last one is the child's key),
then depths. In the v2 and in-memory layouts, refcnt changes are merge operands of 4 bytes each,
which the store appends to the value.

Run as a child process, which may crash, the module reads a part of a store. Exit code 0: readable;
1: not readable, the reason is the last line of stderr.
"""

import hashlib
import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.cell.envelope import NATIVE
from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.rocks import FrozenStore, Scratch
from tonlake.ingest.source.node.tl import CELLDB_VALUE, TlReader

NAME = "celldb"
HASH_BYTES = 32
DEPTH_BYTES = 2
MAX_REFS = 4
COMPRESSED = -1
DESC_PREFIX = b"desc"
DESC_HEAD = b"desczero"
PROBE_TIMEOUT_S = 600
"""A mainnet celldb has thousands of tables; opening them takes minutes at most."""


class CellRecord(NamedTuple):
    """A cell: ``body`` is d1, d2 and data as in a bag of cells, ``children`` are keys (hashes)."""

    body: bytes
    children: list[bytes]
    refcount: int


class CellDb:
    """A snapshot of the cells; use ``open_celldb``, which probes the store before opening."""

    name, width = NAME, HASH_BYTES

    def __init__(self, folder: Path) -> None:
        """Open the store without a probe."""
        self.folder = folder
        self._scratch = Scratch()
        try:
            self._store = FrozenStore(folder, NAME, self._scratch)
        except SourceError:
            self._scratch.close()
            raise

    def get(self, cell_hash: bytes) -> CellRecord | None:
        """Return a cell; None if it is unknown or the node deleted the states with it."""
        value = self._store.get(cell_hash)
        return None if value is None else read_cell_record(cell_hash, value)

    def fetch(self, handles: list[bytes]) -> list[bytes]:
        """Return packed cells (tonlake.ingest.decode.cell.packed) by hash."""
        values = self._store.get_many(handles)
        packed: list[bytes] | None = NATIVE and NATIVE.pack_records(handles, values)
        return packed or list(map(_pack, handles, values))

    def states(self) -> Iterator[tuple[BlockId, bytes]]:
        """Yield the block and the root hash of all states, canonical or not."""
        for key, value in self._store.scan(DESC_PREFIX):
            if key != DESC_HEAD and len(key) != HASH_BYTES:
                yield read_state_entry(value)

    def cells(self) -> Iterator[tuple[bytes, CellRecord]]:
        """Yield all cells with their hashes, in order of hashes."""
        for key, value in self._store.scan():
            if len(key) == HASH_BYTES:
                yield key, read_cell_record(key, value)

    def close(self) -> None:
        """Close the store."""
        self._store.close()
        self._scratch.close()


def open_celldb(db_dir: Path) -> CellDb:
    """Open the celldb of a node's folder after a child process could read part of it."""
    folder = db_dir / NAME
    if not folder.is_dir():
        raise SourceError(f"{NAME}: the node's folder has no celldb")
    command = [sys.executable, "-m", "tonlake.ingest.source.node.celldb", str(folder)]
    try:
        probe = subprocess.run(  # noqa: S603 - our own interpreter and module
            command, check=False, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"{NAME}: not opened within {PROBE_TIMEOUT_S} seconds") from None
    if probe.returncode < 0:
        name = signal.Signals(-probe.returncode).name
        raise SourceError(f"{NAME}: reading it crashes RocksDB ({name}); work without it")
    if probe.returncode:
        raise SourceError(probe.stderr.strip().splitlines()[-1])
    return CellDb(folder)


def read_state_entry(value: bytes) -> tuple[BlockId, bytes]:
    """Read a boxed ``db.celldb.value``: a block, and the root hash of the state after it."""
    reader = TlReader(value, f"{NAME}: db.celldb.value", CELLDB_VALUE)
    block_id = reader.read_block_id()
    reader.read_bytes(2 * HASH_BYTES)  # the states before and after it in a list
    return block_id, reader.read_bytes(HASH_BYTES)


def read_cell_record(cell_hash: bytes, value: bytes) -> CellRecord:
    """Parse the record of a cell, including pending refcnt changes appended to it."""
    reader = TlReader(value, f"{NAME}: cell {cell_hash.hex()}")
    refcount = reader.read_int()
    if refcount == COMPRESSED:
        raise SourceError(
            f"{NAME}: cell {cell_hash.hex()} is stored compressed; cells below it have no key."
            " A node that runs with --celldb-compress-depth cannot be read"
        )
    d1, d2 = reader.read_bytes(2)
    if d1 & 7 > MAX_REFS or d1 & 16:
        raise reader.fail(f"no cell has the descriptor {d1:02x}")
    body = bytes((d1, d2)) + reader.read_bytes((d2 + 1) // 2)
    children: list[bytes] = []
    depths: list[bytes] = []
    for _ in range(d1 & 7):
        levels = reader.read_bytes(1)[0].bit_count() + 1
        children.append(reader.read_bytes(levels * HASH_BYTES)[-HASH_BYTES:])
        depths.append(reader.read_bytes(levels * DEPTH_BYTES)[-DEPTH_BYTES:])
    while reader.position < len(value):
        refcount += reader.read_int()
    digest = hashlib.sha256(b"".join([body, *depths, *children])).digest()
    if not d1 >> 5 and digest != cell_hash:  # a cell with a level has several hashes
        raise reader.fail("the hash of the cell is not its key")
    return CellRecord(body, children, refcount)


def _pack(cell_hash: bytes, value: bytes | None) -> bytes:
    if value is None:
        raise SourceError(f"{NAME}: cell {cell_hash.hex()} is missing: deleted, or damaged")
    record = read_cell_record(cell_hash, value)
    return b"".join([record.body, *record.children])


CELLS_PROBED = 10_000
STATES_PROBED = 100


def probe_celldb(folder: Path) -> None:
    """Read cells and states; cells are sorted by hash, so the first ones are a fair sample."""
    celldb = CellDb(folder)
    try:
        for cell_hash, _record in itertools.islice(celldb.cells(), CELLS_PROBED):
            celldb.get(cell_hash)
        for _block, root_hash in itertools.islice(celldb.states(), STATES_PROBED):
            celldb.get(root_hash)
    finally:
        celldb.close()


if __name__ == "__main__":
    try:
        probe_celldb(Path(sys.argv[1]))
    except SourceError as error:
        sys.exit(str(error))
