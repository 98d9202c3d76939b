"""The lake's chain of masterchain blocks, and blocks that do not continue it."""

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tonlake.ingest.assemble.chain import LakeChain, read_chain
from tonlake.ingest.errors import SourceError
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.log.state import LogReader


def _hash(seqno: int, fork: int = 0) -> bytes:
    return bytes([seqno, fork]) * 16


def _blocks(first: int, last: int, fork: int = 0) -> pa.Table:
    """Masterchain blocks that follow each other, and a shard block that must not matter."""
    seqnos = list(range(first, last + 1))
    return pa.table(
        {
            "workchain": pa.array([-1] * len(seqnos) + [0], pa.int32()),
            "seqno": pa.array([*seqnos, first], pa.int64()),
            "root_hash": pa.array([_hash(at, fork) for at in [*seqnos, 99]], pa.binary(32)),
            "prev_root_hash": pa.array(
                [_hash(at - 1, fork) for at in [*seqnos, 99]], pa.binary(32)
            ),
        }
    )


def test_blocks_that_follow_each_other_are_taken() -> None:
    chain = LakeChain([], {})
    chain.extend(_blocks(5, 9), Span(5, 9))
    chain.extend(_blocks(10, 12), Span(10, 12))


def test_a_gap_in_the_blocks_is_refused() -> None:
    blocks = _blocks(5, 9)
    with pytest.raises(SourceError, match="block 7 is missing"):
        LakeChain([], {}).extend(blocks.filter(pc.not_equal(blocks["seqno"], 7)), Span(5, 9))


@pytest.mark.parametrize(("first", "last"), [(10, 12), (1, 4)])
def test_a_fork_beside_known_blocks_is_refused(first: int, last: int) -> None:
    chain = LakeChain([], {})
    chain.extend(_blocks(5, 9), Span(5, 9))
    with pytest.raises(SourceError, match="another chain"):
        chain.extend(_blocks(first, last, fork=1), Span(first, last))


def test_links_come_from_the_lake(demo_node: Path, tmp_path: Path) -> None:
    with closing(open_node(demo_node)) as source:
        ingest(source, tmp_path, Span(5, 9), IngestSections())
        ingest(source, tmp_path, Span(20, 22), IngestSections())
    chain = read_chain(LogReader(tmp_path), Span(1, 30), {})
    assert chain.covered == [Span(5, 9), Span(20, 22)]
    assert set(chain.links) == {5, 9, 20, 22}
    with pytest.raises(SourceError, match="another chain"):
        chain.extend(_blocks(10, 19), Span(10, 19))
