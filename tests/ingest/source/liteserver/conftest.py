"""The first blocks of the demo node, as served by lite servers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ingest.source.liteserver.server import Chain, make_chain
from tonlake.ingest.source.node.source import open_node

if TYPE_CHECKING:
    from tonlake.ingest.blocks import McBundle


LAST = 22


@pytest.fixture(scope="package")
def bundles(demo_node: Path) -> list[McBundle]:
    """The first blocks of the demo node, with their proofs."""
    with closing(open_node(demo_node, proofs=True)) as source:
        return [source.read_bundle(mc_seqno) for mc_seqno in range(1, LAST + 1)]


@pytest.fixture(scope="package")
def chain(demo_node: Path, bundles: list[McBundle]) -> Chain:
    """The knowledge of a server with these blocks."""
    with closing(open_node(demo_node)) as source:
        return make_chain(bundles, source.zero_states())
