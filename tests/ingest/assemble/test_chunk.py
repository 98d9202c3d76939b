"""The configuration of a block: from key blocks, the zero state, and the lake."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.ingest.facts import ask
from tonlake.ingest.assemble.chunk import VersionRegistry
from tonlake.ingest.blocks import BlockSource, KeyMark, McBundle, ZeroState
from tonlake.ingest.errors import BlockPruned
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.packs import PackSource
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.log.state import LogReader

FIRST_KEY, SECOND_KEY = 99, 283


class MarkedSource:
    """A source whose key blocks say other versions than they do; those said None are pruned."""

    def __init__(self, source: BlockSource, versions: dict[int, int | None]) -> None:
        self._source = source
        self._versions = versions
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def zero_states(self) -> tuple[ZeroState, ...]:
        return () if 0 in self._versions else self._source.zero_states()

    def read_unchecked(self, mc_seqno: int) -> McBundle:
        self.asked.append(mc_seqno)
        bundle = self._source.read_unchecked(mc_seqno)
        if mc_seqno not in self._versions:
            return bundle
        version = self._versions[mc_seqno]
        if version is None:
            raise BlockPruned("deleted", block=bundle.blocks[0].id)
        mark = bundle.mark
        assert mark is not None
        return msgspec.structs.replace(bundle, mark=KeyMark(mark.before, version))


@pytest.fixture(scope="module")
def voted(genuine: Callable[[str], tuple[Path, Path]]) -> Path:
    """A node with key blocks 99, 283 and 568."""
    return genuine("celldb-v2")[0]


def _attach(source: Any, mc_seqno: int, book: VersionRegistry | None = None) -> dict[int, int]:
    book = book or VersionRegistry(source)
    return book.attach(source.read_unchecked(mc_seqno)).versions


def test_the_zero_state_counts_until_the_first_key_block(demo_node: Path) -> None:
    with closing(open_node(demo_node)) as source:
        assert _attach(source, 100) == {0: 11}


def test_packages_alone_leave_the_zero_state_to_the_lake(demo_node: Path, demo_lake: Path) -> None:
    with closing(PackSource(demo_node / "archive/packages")) as source:
        assert _attach(source, 100) == {}
        assert _attach(source, 100, VersionRegistry(source, LogReader(demo_lake))) == {0: 11}


def test_a_start_in_the_middle_looks_for_key_blocks_once(voted: Path) -> None:
    with closing(open_node(voted)) as source:
        marked = MarkedSource(source, {FIRST_KEY: 12, SECOND_KEY: 13})
        book = VersionRegistry(marked)
        assert _attach(marked, 300, book) == {FIRST_KEY: 12, SECOND_KEY: 13}
        assert _attach(marked, 301, book) == {FIRST_KEY: 12, SECOND_KEY: 13}
        assert marked.asked == [300, SECOND_KEY, FIRST_KEY, 301]
        # A key block is made under the configuration before its own.
        assert _attach(marked, SECOND_KEY, book) == {0: 11, FIRST_KEY: 12}


def test_what_a_node_has_deleted_its_lake_still_knows(voted: Path, tmp_path: Path) -> None:
    with closing(open_node(voted)) as source:
        ingest(source, tmp_path, Span(280, 285), IngestSections())
        lost = MarkedSource(source, dict.fromkeys((0, FIRST_KEY, SECOND_KEY)))
        assert _attach(lost, 300) == {}
        again = VersionRegistry(lost, LogReader(tmp_path))
        assert _attach(lost, 300, again) == {SECOND_KEY: 11}


def test_rows_follow_the_vote(voted: Path, tmp_path: Path) -> None:
    """Shard blocks that lag behind a key block, and that block itself, are of the time before."""
    with closing(open_node(voted)) as source:
        marked: Any = MarkedSource(source, {FIRST_KEY: 11, SECOND_KEY: 12})
        ingest(marked, tmp_path, Span(275, 284), IngestSections())
        ingest(marked, tmp_path, Span(285, 290), IngestSections())
    sql = """
    select distinct b.prev_key_block_seqno, extra_flags is not null
    from messages m
    join transactions t on t.hash = m.tx_hash
    join blocks b
    on (b.workchain, b.shard, b.seqno) = (t.workchain, t.shard, t.block_seqno)
    where m.kind = 'int'
    order by all
    """
    assert ask(tmp_path, sql) == [(FIRST_KEY, False), (SECOND_KEY, True)]
