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


def check_lake(lake: Path, facts: Path, last: int, *, accounts: bool = True) -> None:
    """Compare a lake with what the node's own tools say, and with itself."""
    check_blocks(lake, facts, last)
    check_transactions(lake, facts, last)
    if accounts:
        check_accounts(lake, facts)
    check_traces(lake)
    assert rebuild("traces", lake, SETTINGS) is None
    assert not verify_lake(lake).damage


@pytest.mark.parametrize(
    ("name", "last"), [("localnet-db", 1686), ("celldb-v2/localnet-celldbv2", 694)]
)
def test_a_genuine_network_is_whole(
    shared: Path, ingest_network: Callable[[str], Path], name: str, last: int
) -> None:
    check_lake(ingest_network(f"node/{name}"), (shared / "node" / name).parent, last)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "last_expected", "settings"),
    [
        ("main", 1686, SETTINGS),
        ("live-copy", None, SETTINGS),
        ("celldb-v2", 694, SETTINGS),
        ("after-sigterm", 694, BLOCKS_ALONE),
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
        again = ingest(source, lake, span, settings)
    assert tree_digest(node) == before
    assert span.first == 1
    assert last_expected in {None, span.last}
    assert not report.holes
    assert again.commits == 0
    check_lake(lake, facts, span.last, accounts=last_expected is not None)
