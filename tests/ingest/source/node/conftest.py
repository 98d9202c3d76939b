"""Blocks of databases, and a check that a folder is unchanged."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.source.node.source import open_node

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.blocks import McBundle


def read_expected(facts: Path) -> dict[BlockId, int]:
    """Return the masterchain seqno that committed each block, according to the lite server."""
    found = {}
    for line in (facts / "expected-blocks.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
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


@pytest.fixture(scope="session")
def bundles(demo_node: Path) -> list[McBundle]:
    """All bundles of the demo node, in order."""
    with closing(open_node(demo_node)) as source:
        return [source.read_bundle(seqno) for seqno in range(1, source.last_mc_seqno() + 1)]
