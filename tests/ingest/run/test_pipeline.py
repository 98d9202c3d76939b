"""The pipeline on the demo node: everything once, the same bytes every time, holes reported."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from tests.damage import flip
from tests.ingest.facts import ask, check_accounts, check_blocks, check_transactions
from tests.ingest.simulator.chain import fork
from tests.ingest.simulator.node import SimulatedNode
from tests.ingest.whole import tree_digest
from tests.patience import compose, vary
from tonlake.api.command.doctor import check_node
from tonlake.ingest.blocks import BlockSource, McBundle, ZeroState
from tonlake.ingest.derive.body import derivation
from tonlake.ingest.errors import BlockCorrupt, SourceError, SourceForeign
from tonlake.ingest.run.follow import Follower
from tonlake.ingest.run.pipeline import IngestReport, ingest
from tonlake.ingest.run.workers import Workers
from tonlake.ingest.source.node.packs import PackSource
from tonlake.ingest.source.node.source import NodeSource, open_node
from tonlake.ingest.span import Span
from tonlake.lake.file import datafile
from tonlake.lake.log.snapshot import open_snapshot

SMALL = compose(ingest={"mc_blocks_per_commit": 40, "mc_blocks_per_chunk": 20})
BLOCKS_ALONE = vary(SMALL, ingest={"detect_contracts": False, "classify_actions": False})
"""For tests of how blocks come into a lake, whatever is derived from them."""


def _bring(
    source: BlockSource, lake: Path, span: Span | None = None, **options: Any
) -> IngestReport:
    span = span or Span(source.first_mc_seqno(), source.last_mc_seqno())
    return ingest(source, lake, span, options.pop("settings", SMALL), **options)


@pytest.fixture(scope="module")
def lake(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipeline") / "lake"
    with closing(open_node(demo_node)) as source:
        report = _bring(source, folder)
    assert report.committed == ["1:40", "41:80", "81:120", "121:160", "161:200", "201:238"]
    assert not report.holes
    return folder


@pytest.fixture
def source(demo_node: Path) -> Iterator[NodeSource]:
    with closing(open_node(demo_node)) as opened:
        yield opened


def test_the_lake_has_the_node_s_rows(lake: Path, demo_facts: Path) -> None:
    check_blocks(lake, demo_facts, 238)
    check_transactions(lake, demo_facts, 238)
    check_accounts(lake, demo_facts)


def test_a_second_run_adds_nothing(lake: Path, source: NodeSource) -> None:
    before = tree_digest(lake)
    report = _bring(source, lake)
    assert not report.committed
    assert report.skipped == ["1:238"]
    assert tree_digest(lake) == before


def test_a_node_of_another_chain_is_refused_where_nothing_is_lacking(
    lake: Path, demo_node: Path, tmp_path: Path
) -> None:
    before = tree_digest(lake)
    with closing(open_node(demo_node)) as source:
        bundles = [source.read_bundle(mc_seqno) for mc_seqno in range(1, 31)]
    with closing(SimulatedNode(tmp_path / "other")) as other:
        for bundle in fork(bundles, 20, salt=1):
            other.write(bundle)
        with closing(open_node(other.db_dir)) as source:
            assert _bring(source, lake, Span(1, 20)).skipped == ["1:20"]
            for span in (Span(1, 30), Span(25, 300)):
                with pytest.raises(SourceError, match="another chain: its masterchain block 30 is"):
                    _bring(source, lake, span)
        found = [each for each in check_node(other.db_dir, lake) if each.subject == "node and lake"]
        assert [each.level for each in found] == ["problem"]
    assert tree_digest(lake) == before


class OtherNetwork(NodeSource):
    """A node whose masterchain began with another state."""

    def zero_states(self) -> tuple[ZeroState, ...]:
        return tuple(
            msgspec.structs.replace(zero, root_hash=bytes(32)) for zero in super().zero_states()
        )


def test_a_node_of_another_network_is_refused_where_nothing_is_lacking(
    lake: Path, demo_node: Path
) -> None:
    with (
        closing(OtherNetwork(demo_node, open_indexes=4)) as source,
        pytest.raises(SourceError, match="another network: its zero state is"),
    ):
        _bring(source, lake)


def test_a_follower_ends_where_the_node_is_of_another_network(
    lake: Path, demo_node: Path, tmp_path: Path
) -> None:
    own = shutil.copytree(lake, tmp_path / "lake", copy_function=os.link)

    def open_other() -> NodeSource:
        return OtherNetwork(demo_node, open_indexes=4)

    follower = Follower(open_other, own, SMALL, notify=print)
    with closing(follower), pytest.raises(SourceForeign, match="another network: its zero state"):
        follower.step()


@pytest.mark.parametrize(
    "count", [2, pytest.param(3, marks=pytest.mark.long), pytest.param(8, marks=pytest.mark.long)]
)
def test_any_number_of_workers_gives_the_same_bytes(
    lake: Path, demo_node: Path, tmp_path: Path, count: int
) -> None:
    again = tmp_path / "again"
    with (
        closing(open_node(demo_node)) as source,
        closing(Workers(count, again, partial(open_node, demo_node))) as workers,
        mock.patch.object(datafile, "PLAIN_ROWS", 10),  # workers write smaller files as well
        mock.patch.object(derivation, "_BODIES_AT_ONCE", 10),
    ):
        _bring(source, again, workers=workers)
    assert tree_digest(tmp_path / "again") == tree_digest(lake)


def test_commits_are_cut_by_the_memory_of_their_rows(source: NodeSource, tmp_path: Path) -> None:
    settings = vary(BLOCKS_ALONE, ingest={"mc_blocks_per_chunk": 5, "commit_bytes": 1})
    report = _bring(source, tmp_path / "lake", Span(1, 20), settings=settings)
    assert report.committed == ["1:5", "6:10", "11:15", "16:20"]


def test_the_node_is_left_as_it_was(source: NodeSource, demo_node: Path, tmp_path: Path) -> None:
    before = tree_digest(demo_node)
    _bring(source, tmp_path / "lake", Span(1, 20))
    assert tree_digest(demo_node) == before


def test_packages_alone_give_the_same(lake: Path, demo_node: Path, tmp_path: Path) -> None:
    with closing(PackSource(demo_node / "archive" / "packages")) as source:
        report = _bring(source, tmp_path / "lake", settings=BLOCKS_ALONE)
    assert not report.holes
    sql = "select hash from transactions order by hash"
    assert ask(tmp_path / "lake", sql) == ask(lake, sql)


class Damaged:
    """A source that gives one block with a flipped bit."""

    def __init__(self, source: BlockSource, mc_seqno: int) -> None:
        self._source = source
        self._mc_seqno = mc_seqno

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read_unchecked(self, mc_seqno: int) -> McBundle:
        return self.read_bundle(mc_seqno)

    def read_bundle(self, mc_seqno: int) -> McBundle:
        bundle = self._source.read_bundle(mc_seqno)
        if mc_seqno != self._mc_seqno:
            return bundle
        first, *rest = bundle.blocks
        broken = msgspec.structs.replace(first, data=flip(first.data, len(first.data) // 2))
        return msgspec.structs.replace(bundle, blocks=(broken, *rest))


def test_a_corrupt_block_is_a_hole_and_the_rest_goes_on(source: NodeSource, tmp_path: Path) -> None:
    broken: Any = Damaged(source, 21)
    report = _bring(broken, tmp_path / "lake", Span(1, 50), settings=BLOCKS_ALONE)
    assert [(hole.mc_seqno, hole.kind) for hole in report.holes] == [(21, "BlockCorrupt")]
    assert "(-1,8000000000000000,21)" in report.holes[0].reason
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 20), (22, 50))
    healed = _bring(source, tmp_path / "lake", Span(1, 50), settings=BLOCKS_ALONE)
    assert healed.committed == ["21:21"]
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 50),)


def test_a_hole_found_while_decoding_names_file_and_place(demo_node: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_node, tmp_path / "db")
    with closing(open_node(demo_node)) as source:
        shard_block = source.read_bundle(21).blocks[1]
    middle = len(shard_block.data) // 2
    for package in (tmp_path / "db").rglob("*.pack"):
        before, found, after = package.read_bytes().partition(shard_block.data)
        if found:
            flipped = bytes([found[middle] ^ 1])
            package.chmod(0o644)
            package.write_bytes(before + found[:middle] + flipped + found[middle + 1 :] + after)
    with closing(open_node(tmp_path / "db")) as source:
        assert source.read_unchecked(21).blocks[1].id == shard_block.id
        report = _bring(source, tmp_path / "lake", Span(15, 25), settings=BLOCKS_ALONE)
        with pytest.raises(BlockCorrupt) as error:
            source.read_bundle(21)
    assert [(hole.mc_seqno, hole.kind) for hole in report.holes] == [(21, "BlockCorrupt")]
    assert report.holes[0].reason == str(error.value)
    assert ".pack at byte" in report.holes[0].reason


class Shifted(Damaged):
    """A source that gives each block under the next seqno."""

    def read_bundle(self, mc_seqno: int) -> McBundle:
        bundle = self._source.read_bundle(mc_seqno - 1)
        return msgspec.structs.replace(bundle, mc_seqno=mc_seqno)


def test_a_source_that_gives_other_blocks_is_refused(source: NodeSource, tmp_path: Path) -> None:
    _bring(source, tmp_path / "lake", Span(1, 10))
    with pytest.raises(SourceError, match="missing from the decoded blocks"):
        _bring(Shifted(source, 0), tmp_path / "lake", Span(11, 20))
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 10),)


def test_a_copied_lake_resumes_to_the_same_bytes(source: NodeSource, tmp_path: Path) -> None:
    _bring(source, tmp_path / "lake", Span(1, 40))
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    _bring(source, tmp_path / "lake", Span(1, 120))
    _bring(source, tmp_path / "copy", Span(1, 120))
    assert tree_digest(tmp_path / "copy") == tree_digest(tmp_path / "lake")
