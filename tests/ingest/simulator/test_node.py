"""A simulated node killed while writing continues as if it had not been."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.ingest.simulator.chain import fork
from tests.ingest.simulator.node import SimulatedNode
from tests.ingest.simulator.process import NodeProcess
from tonlake.ingest.blocks import McBundle
from tonlake.ingest.source.node.source import open_node

SLICES = (0, 10)
FIRST, LAST = 8, 14
"""A slice begins in between."""


@pytest.fixture(scope="module")
def bundles(demo_node: Path) -> list[McBundle]:
    with closing(open_node(demo_node)) as source:
        return [source.read_bundle(at) for at in range(1, LAST + 1)]


def list_ids(bundles: Sequence[McBundle]) -> list[list[object]]:
    return [[block.id for block in bundle.blocks] for bundle in bundles]


def read_all(db_dir: Path, last: int) -> list[McBundle]:
    with closing(open_node(db_dir)) as source:
        assert source.last_mc_seqno() == last
        return [source.read_bundle(at) for at in range(1, last + 1)]


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_what_was_half_written_is_undone_and_written_again(
    tmp_path: Path, bundles: list[McBundle], blocks: int
) -> None:
    with closing(SimulatedNode(tmp_path, slices=SLICES)) as node:
        for bundle in bundles[:FIRST]:
            node.write(bundle)
        for bundle in bundles[FIRST : LAST - 1]:
            node.write(bundle)
        for block in bundles[LAST - 1].blocks[:blocks]:
            node.writer.write_block(SLICES[-1], LAST, block)
        with node.packages()[-1].open("ab") as torn:
            torn.write(bytes(100))
    with closing(SimulatedNode(tmp_path, slices=SLICES, written=bundles[: LAST - 1])) as again:
        again.recover(bundles[LAST - 1])
        assert again.last == LAST - 1
        assert list_ids(read_all(tmp_path, LAST - 1)) == list_ids(bundles[: LAST - 1])
        again.roll_back(FIRST)
        other = fork(bundles, FIRST, salt=1)
        for bundle in other[FIRST:]:
            again.write(bundle)
        assert list_ids(read_all(tmp_path, LAST)) == list_ids(other)


def test_a_node_is_killed_in_its_own_process(tmp_path: Path, bundles: list[McBundle]) -> None:
    with closing(NodeProcess(tmp_path, SLICES)) as node:
        for at, bundle in enumerate(bundles[:12]):
            node.write(bundle, killed_after_s=0.002 if at == 9 else None)
        node.roll_back(5)
        for bundle in fork(bundles, 5, salt=2)[5:12]:
            node.write(bundle)
        assert list_ids(read_all(tmp_path, 12)) == list_ids(node.written)
