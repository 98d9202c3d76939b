"""Genuine node databases: celldb v1 and v2, stopped, killed, and copied while the node ran."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.ingest.derive.trace.test_network import check_traces
from tests.ingest.facts import check_accounts, check_blocks, check_transactions
from tests.ingest.whole import tree_digest
from tests.patience import compose, vary
from tonlake.ingest.derive.stages import rebuild
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.run.workers import start_workers
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import Span
from tonlake.lake.maintenance.verify import verify_lake

SETTINGS = compose(ingest={"mc_blocks_per_commit": 500})
BLOCKS_ALONE = vary(SETTINGS, ingest={"detect_contracts": False, "classify_actions": False})
"""For a database of the same blocks as another one."""


@pytest.mark.parametrize(
    ("name", "last_expected", "settings"),
    [
        ("main", 1686, SETTINGS),
        pytest.param("live-copy", None, SETTINGS, marks=pytest.mark.long),
        pytest.param("celldb-v2", 694, SETTINGS, marks=pytest.mark.long),
        pytest.param("after-sigterm", 694, BLOCKS_ALONE, marks=pytest.mark.long),
    ],
)
def test_a_genuine_database_ingests_whole(
    genuine: Callable[[str], tuple[Path, Path]],
    tmp_path: Path,
    name: str,
    last_expected: int | None,
    settings: IngestSections,
) -> None:
    node, facts = genuine(name)
    before = tree_digest(node)
    lake = tmp_path / "lake"
    with (
        closing(open_node(node)) as source,
        start_workers(Origin(node), lake, settings, 2) as workers,
    ):
        span = Span(source.first_mc_seqno(), source.last_mc_seqno())
        report = ingest(source, lake, span, settings, workers=workers)
        again = ingest(source, tmp_path / "lake", span, settings)
    assert tree_digest(node) == before
    assert span.first == 1
    assert last_expected in {None, span.last}
    assert not report.holes
    assert again.commits == 0
    check_blocks(tmp_path / "lake", facts, span.last)
    check_transactions(tmp_path / "lake", facts, span.last)
    if last_expected is not None:
        check_accounts(tmp_path / "lake", facts)
    check_traces(tmp_path / "lake")
    assert rebuild("traces", tmp_path / "lake", settings) is None
    assert not verify_lake(tmp_path / "lake").damage
