"""A pruned lake continues like an unpruned one: with new blocks, and with open traces."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.patience import compose
from tonlake.ingest.command.rebuild import upgrade_lake
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.prune import prune_lake
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import TABLES

LAST, BORDER = 238, 122
SETTINGS = compose(ingest={"mc_blocks_per_commit": 25, "mc_blocks_per_chunk": 25})
CUT = ("state_cells", "interfaces", "action_ranges")
"""Tables whose rows depend on how blocks are cut into commits."""

OF_TRACES = {
    *("transactions", "messages", "transaction_traces", "message_bodies", "account_states")
}


def bring(node: Path, lake: Path, first: int, last: int) -> Any:
    with closing(open_node(node)) as source:
        return ingest(source, lake, Span(first, last), SETTINGS)


def read_all(lake: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(connect(open_snapshot(lake))) as connection:
        return {
            name: connection.execute(
                f"select * exclude (day) from {name} order by all"  # noqa: S608
            ).fetchall()
            for name in TABLES.keys() - {*CUT}
        }


@pytest.fixture(scope="module")
def begun(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo network up to a block at which traces are open."""
    lake = tmp_path_factory.mktemp("begun") / "lake"
    bring(demo_node, lake, 1, 127)
    return lake


def test_it_follows_on(demo_node: Path, begun: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(begun, tmp_path / "lake")
    prune_lake(lake, BORDER, SETTINGS.lake)
    report = bring(demo_node, lake, 1, LAST)
    assert not report.holes
    state = read_state(lake)
    assert state.ranges == ((BORDER, LAST),)
    assert state.pruned == ((1, BORDER - 1),)
    whole = shutil.copytree(begun, tmp_path / "whole")
    bring(demo_node, whole, 1, LAST)
    prune_lake(whole, BORDER, SETTINGS.lake)
    found, expected = read_all(lake), read_all(whole)
    for name, rows in expected.items():
        if name in OF_TRACES:  # traces that ended meanwhile were open when the lake was pruned
            assert set(map(repr, rows)) <= set(map(repr, found[name])), name
        else:
            assert found[name] == rows, name
    prune_lake(lake, BORDER + 8, SETTINGS.lake)
    prune_lake(whole, BORDER + 8, SETTINGS.lake)
    assert read_all(lake) == read_all(whole)
    assert not verify_lake(lake).damage
    assert [*upgrade_lake(lake, SETTINGS)] == []


def test_a_trace_without_beginning_goes_with_its_blocks(demo_node: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    bring(demo_node, lake, 123, LAST)
    with closing(connect(open_snapshot(lake))) as connection:
        text = "select count(*) from traces where state = 'broken'"
        assert connection.execute(text).fetchall() != [(0,)]
    prune_lake(lake, 180, SETTINGS.lake)
    with closing(connect(open_snapshot(lake))) as connection:
        assert connection.execute(text).fetchall() == [(0,)]
        assert connection.execute("select count(*) from open_edges").fetchall() == [(0,)]
        left = "select hash from transactions where mc_seqno < 180 order by all"
        crossing = """
            select hash from transaction_traces join traces using (trace_id)
            where mc_seqno < 180 and mc_seqno_end >= 180
            order by all
        """
        assert connection.execute(left).fetchall() == connection.execute(crossing).fetchall()
    assert not verify_lake(lake).damage
