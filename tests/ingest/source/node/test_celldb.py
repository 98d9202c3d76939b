"""Genuine celldbs of both forms have the states of their blocks, cell by cell."""

import hashlib
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.source.node.conftest import fingerprint
from tests.ingest.source.node.nodewriter import encode_id, open_store
from tests.ingest.source.node.test_tl import BLOCK_IDS, HASH
from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.block.header import read_parts
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.tree import ORDINARY, PRUNED, CellTree
from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.celldb import (
    CellDb,
    CellRecord,
    open_celldb,
    read_cell_record,
    read_state_entry,
)
from tonlake.ingest.source.node.source import open_node

EMPTY_CELL = bytes(2)
EMPTY_HASH = hashlib.sha256(EMPTY_CELL).digest()


def encode_ref(levels: list[tuple[bytes, int]]) -> bytes:
    mask = (1 << len(levels) - 1) - 1
    hashes = b"".join(cell_hash for cell_hash, _depth in levels)
    return bytes([mask]) + hashes + b"".join(struct.pack(">H", depth) for _hash, depth in levels)


def updated_cells(tree: CellTree) -> Iterator[int]:
    """Yield the cells of the new state in a block, without pruned branches."""
    todo = [tree.links[read_parts(tree).state_update][1]]
    seen = set(todo)
    while todo:
        cell = todo.pop()
        if tree.kind(cell) != PRUNED:
            yield cell
            todo += [one for one in tree.links[cell] if one not in seen]
            seen |= set(tree.links[cell])


def check_same_cells(celldb: CellDb, block: bytes) -> int:
    """Compare every cell of a block's update with the record of the same hash."""
    tree = parse_boc(block, check_crc=False)
    count = 0
    for cell in updated_cells(tree):
        record = celldb.get(tree.hash(cell, 0))
        assert record is not None
        assert record.children == [tree.hash(child, 0) for child in tree.links[cell]]
        assert record.body[2:] == tree.payload(cell)
        assert (record.body[0] & 8 == 0) == (tree.kind(cell) == ORDINARY)
        count += 1
    return count


def check_states_of_all_blocks(db_dir: Path) -> None:
    with closing(open_node(db_dir)) as source, closing(open_celldb(db_dir)) as celldb:
        states = dict(celldb.states())
        for mc_seqno in range(1, source.last_mc_seqno() + 1):
            for block in source.read_bundle(mc_seqno).blocks:
                tree = parse_boc(block.data, check_crc=False)
                update = tree.payload(read_parts(tree).state_update)
                assert states[block.id] == update[33:65]  # after the hash of the old state
                if mc_seqno % 37 == 0:
                    assert check_same_cells(celldb, block.data) >= 3


def test_demo_celldb_gives_the_cells_of_the_blocks(demo_node: Path) -> None:
    before = fingerprint(demo_node)
    with closing(open_celldb(demo_node)) as celldb:
        assert sum(1 for _ in celldb.cells()) == 14_267
        assert sum(1 for _ in celldb.states()) == 596
        assert celldb.get(bytes(32)) is None
    check_states_of_all_blocks(demo_node)
    assert fingerprint(demo_node) == before


@pytest.mark.parametrize(
    ("name", "cells", "states"),
    [
        ("celldb-v2", 50_996, 2_701),
        pytest.param("live-copy", 102_996, 2_596, marks=pytest.mark.long),
        pytest.param("after-sigterm", 50_996, 2_701, marks=pytest.mark.long),
    ],
)
def test_genuine_celldbs_are_read_to_the_end(
    genuine: Callable[[str], tuple[Path, Path]], name: str, cells: int, states: int
) -> None:
    db_dir, _facts = genuine(name)
    before = fingerprint(db_dir)
    with closing(open_celldb(db_dir)) as celldb:
        refcounts = [record.refcount for _hash, record in celldb.cells()]
        assert len(refcounts) == cells
        assert min(refcounts) > 0
        assert sum(1 for _ in celldb.states()) == states
    assert fingerprint(db_dir) == before


@pytest.mark.parametrize(
    "name", ["celldb-v2", pytest.param("after-sigterm", marks=pytest.mark.long)]
)
def test_cells_with_pending_merges_are_those_of_the_blocks(
    genuine: Callable[[str], tuple[Path, Path]], name: str
) -> None:
    check_states_of_all_blocks(genuine(name)[0])


@given(st.integers(1, 1 << 20), st.lists(st.integers(-5, 5), max_size=4), st.binary(max_size=127))
def test_records_come_back(refcount: int, operands: list[int], data: bytes) -> None:
    body = bytes([2, len(data) * 2]) + data
    child = (EMPTY_HASH, 0)
    depths_and_hashes = struct.pack(">HH", 0, 0) + EMPTY_HASH * 2
    cell_hash = hashlib.sha256(body + depths_and_hashes).digest()
    value = struct.pack("<i", refcount) + body + encode_ref([child]) * 2
    value += b"".join(struct.pack("<i", operand) for operand in operands)
    record = read_cell_record(cell_hash, value)
    assert record.children == [EMPTY_HASH, EMPTY_HASH]
    assert (record.body, record.refcount) == (body, refcount + sum(operands))
    with pytest.raises(SourceError, match="the hash of the cell is not its key"):
        read_cell_record(EMPTY_HASH, value)
    with pytest.raises(SourceError, match="too early"):
        read_cell_record(cell_hash, value[:-1])


@given(HASH, HASH, st.integers(0, 1024), st.integers(0, 1024))
def test_the_last_hash_of_a_reference_is_the_child(
    lower: bytes, own: bytes, depth: int, own_depth: int
) -> None:
    body = bytes([1 | 1 << 5, 0])
    value = struct.pack("<i", 1) + body + encode_ref([(lower, depth), (own, own_depth)])
    record = read_cell_record(bytes(32), value)
    assert record.children == [own]


@pytest.mark.parametrize("descriptor", [5, 7, 16, 17])
def test_impossible_descriptors_are_refused(descriptor: int) -> None:
    with pytest.raises(SourceError, match=f"no cell has the descriptor {descriptor:02x}"):
        read_cell_record(bytes(32), struct.pack("<i", 1) + bytes([descriptor, 0]))


@given(BLOCK_IDS, HASH)
def test_state_entries_come_back(block_id: BlockId, root_hash: bytes) -> None:
    value = bytes.fromhex("401410e6") + encode_id(block_id) + bytes(32) + bytes(32) + root_hash
    assert read_state_entry(value) == (block_id, root_hash)


def write_celldb(db_dir: Path, rows: dict[bytes, bytes]) -> Path:
    with closing(open_store(db_dir / "celldb")) as store:
        for key, value in rows.items():
            store[key] = value
    return db_dir


def test_a_permanent_celldb_is_read(tmp_path: Path) -> None:
    record = struct.pack("<i", 1 << 29) + EMPTY_CELL
    rows = {b"opts.permanent_mode": b"1", EMPTY_HASH: record}
    with closing(open_celldb(write_celldb(tmp_path, rows))) as celldb:
        assert list(celldb.cells()) == [(EMPTY_HASH, CellRecord(EMPTY_CELL, [], 1 << 29))]
        assert not list(celldb.states())


def test_a_compressed_celldb_is_refused(tmp_path: Path) -> None:
    record = struct.pack("<ii", -1, 3) + bytes.fromhex("b5ee9c72010101010002000000")
    with pytest.raises(SourceError, match="--celldb-compress-depth cannot be read"):
        open_celldb(write_celldb(tmp_path, {EMPTY_HASH: record}))


def test_a_crash_while_probing_is_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -SEGV $$\n", encoding="ascii")
    crashing.chmod(0o755)
    write_celldb(tmp_path, {})
    monkeypatch.setattr(sys, "executable", str(crashing))
    with pytest.raises(SourceError, match=r"celldb: reading it crashes RocksDB \(SIGSEGV\)"):
        open_celldb(tmp_path)


def test_a_missing_and_a_damaged_celldb_are_refused(demo_node: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="celldb: the node's folder has no celldb"):
        open_celldb(tmp_path)
    shutil.copytree(demo_node / "celldb", tmp_path / "celldb")
    for table in (tmp_path / "celldb").glob("*.sst"):
        content = bytearray(table.read_bytes())
        for at in range(50, len(content), 4000):
            content[at] ^= 1
        table.write_bytes(content)
    with pytest.raises(SourceError, match=r"celldb: .*[Cc]orrupt"):
        open_celldb(tmp_path)
