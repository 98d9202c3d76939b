"""Blocks of databases, and a check that a folder is unchanged."""

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.conftest import read_lines
from tonlake.ingest.blocks import BlockId, BlockSource


def read_expected(facts: Path) -> dict[BlockId, int]:
    """Return the masterchain seqno that committed each block, according to the lite server."""
    found = {}
    for row in read_lines(facts / "expected-blocks.jsonl"):
        hashes = bytes.fromhex(row["root_hash"]), bytes.fromhex(row["file_hash"])
        found[BlockId(row["workchain"], row["shard"], row["seqno"], *hashes)] = row["mc_seqno"]
    return found


def fingerprint(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Return everything that a write would change: names, contents, mtimes, inodes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (content, status.st_mtime_ns, status.st_ino)
    return found


def read_all(source: BlockSource) -> dict[BlockId, int]:
    """Return every block with the masterchain block that commits it; fail on duplicates."""
    found: dict[BlockId, int] = {}
    for mc_seqno in range(source.first_mc_seqno(), source.last_mc_seqno() + 1):
        bundle = source.read_bundle(mc_seqno)
        ids = [block.id for block in bundle.blocks]
        assert ids[0].workchain == -1
        assert ids[1:] == sorted(ids[1:])
        assert not found.keys() & set(ids)
        found |= dict.fromkeys(ids, mc_seqno)
    return found


@pytest.fixture
def copied(demo_node: Path, tmp_path: Path) -> Path:
    """A writable copy of the demo node."""
    shutil.copytree(demo_node, tmp_path / "db")
    return tmp_path / "db"
