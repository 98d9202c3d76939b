"""Persistent states as a node writes them, made out of celldb: young networks have none."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.packed import Loaded
from tonlake.ingest.decode.cell.record import append_packed
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.shardstate import name_states
from tonlake.ingest.source.node.source import open_node

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.source.node.shardstate import NamedState


def write_states(node: Path, target: Path, mc_seqno: int) -> list[Path]:
    """Copy a node's folder without celldb, with the states after a masterchain block as files."""
    shutil.copytree(node, target, ignore=shutil.ignore_patterns("celldb"))
    folder = target / "archive" / "states"
    folder.mkdir(exist_ok=True)
    with closing(open_node(node)) as source, closing(CellDb(node / "celldb")) as celldb:
        named = name_states(source, mc_seqno)
        paths = []
        for state in named.states:
            path = folder / _name(mc_seqno, state)
            path.write_bytes(_read_bag(celldb, state.root_hash))
            paths.append(path)
    return paths


def _name(mc_seqno: int, state: NamedState) -> str:
    """Return a file's name; its last part is a digest of the ids, which readers do not need."""
    shard = f"{state.shard & (1 << 64) - 1:x}"
    key = hashlib.sha256(f"{mc_seqno} {state}".encode()).hexdigest().upper()
    return f"state_{mc_seqno}_{state.workchain}_{shard}_{key}"


def _read_bag(celldb: CellDb, root_hash: bytes) -> bytes:
    cells = Loaded(celldb, [root_hash]).unpack()
    tree = CellTree()
    return serialize_boc(tree, [append_packed(tree, root_hash, cells, {})], crc32c=True)
