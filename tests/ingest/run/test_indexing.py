"""Segments built during an ingest are the same for any number of workers."""

from contextlib import closing
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from tests.ingest.run.test_pipeline import BLOCKS_ALONE
from tests.ingest.whole import ingest_node, tree_digest
from tonlake.ingest.run.pipeline import Indexing, ingest
from tonlake.ingest.run.workers import Workers
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.index.builder import plan
from tonlake.lake.index.builder.plan import range_of
from tonlake.lake.index.index import open_segments
from tonlake.lake.log.ranges import merge_ranges
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_commit, read_state
from tonlake.lake.settings import LakeSettings

FEWEST = 300
"""Transactions of a segment here: about three commits."""


def bring(node: Path, lake: Path, workers: Workers | None = None, last: int = 238) -> None:
    with closing(open_node(node)) as source, mock.patch.object(plan, "MIN_ROWS", FEWEST):
        indexing = Indexing(lake, BLOCKS_ALONE.ingest, workers)
        span = Span(1, last)
        ingest(
            source, lake, span, BLOCKS_ALONE, lambda _progress: indexing.advance(), workers=workers
        )
        indexing.finish()


@pytest.fixture(scope="module")
def lake(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexing") / "lake"
    bring(demo_node, folder)
    return folder


def test_segments_are_named_while_the_ingest_goes_on(lake: Path) -> None:
    state = read_state(lake)
    assert len(state.segments) > 2
    assert merge_ranges(tuple(map(range_of, state.segments))) == ((1, 238),)
    assert open_segments(open_snapshot(lake), LakeSettings(index_memory_rows=0)) is not None
    commits = [read_commit(lake, number)[0] for number in range(1, state.number + 1)]
    kinds = [commit.has_blocks for commit in commits]
    assert False in kinds[: len(kinds) - 1 - kinds[::-1].index(True)], "all were named at the end"


def test_any_number_of_workers_gives_the_same_segments(
    lake: Path, demo_node: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    with closing(Workers(2, again, partial(open_node, demo_node))) as workers:
        bring(demo_node, again, workers)
    assert tree_digest(again) == tree_digest(lake)


def test_a_later_run_goes_on_with_the_same_segments(
    lake: Path, demo_node: Path, tmp_path: Path
) -> None:
    """As after a run that was killed: its segments that were not named are built again."""
    again = tmp_path / "again"
    ingest_node(demo_node, again, BLOCKS_ALONE, 1, 200)
    bring(demo_node, again)
    assert {segment.path for segment in read_state(again).segments} == {
        segment.path for segment in read_state(lake).segments
    }
