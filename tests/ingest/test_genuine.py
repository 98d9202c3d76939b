"""Genuine node databases: celldb v1 and v2, stopped, killed, and copied while the node ran."""

from __future__ import annotations

import hashlib
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ingest.node.source import open_node
from ingest.pipeline import ingest
from ingest.span import Span
from lake.settings import Settings
from lake.verify import verify_lake
from tests.conftest import unpack
from tests.ingest.facts import check_accounts, check_blocks, check_transactions

if TYPE_CHECKING:
    from pathlib import Path

DATABASES = {
    "main": ("node/localnet-db.tar.zst", "db", "node", 1686),
    "live copy": ("node/localnet-db-live-copy.tar.zst", "db", "node", None),
    "celldb v2": ("node/celldb-v2/localnet-celldbv2.tar.zst", "db", "node/celldb-v2", 694),
    "celldb v2 after SIGTERM": (
        "node/celldb-v2/localnet-celldbv2.tar.zst",
        "db-after-sigterm",
        "node/celldb-v2",
        694,
    ),
}


def _digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()


@pytest.mark.parametrize("name", DATABASES)
def test_a_genuine_database_ingests_whole(name: str, shared: Path, tmp_path: Path) -> None:
    archive, folder, facts_folder, last_expected = DATABASES[name]
    unpack(shared / archive, tmp_path / "node")
    node = next((tmp_path / "node").glob(f"*/{folder}"))
    facts = shared / facts_folder
    before = _digest(node)
    with closing(open_node(node)) as source:
        span = Span(source.first_mc_seqno(), source.last_mc_seqno())
        report = ingest(source, tmp_path / "lake", span, Settings(), workers=2)
        again = ingest(source, tmp_path / "lake", span, Settings())
    assert _digest(node) == before
    assert span.first == 1
    assert last_expected in {None, span.last}
    assert not report.holes
    assert again.commits == 0
    check_blocks(tmp_path / "lake", facts, span.last)
    check_transactions(tmp_path / "lake", facts, span.last)
    if last_expected is not None:
        check_accounts(tmp_path / "lake", facts)
    assert not verify_lake(tmp_path / "lake").damage
