"""The genuine networks that tests of decoded blocks run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import unpack
from tests.ingest.networks import Network

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def demo(demo_node: Path, demo_facts: Path) -> Network:
    """The small network of the demo node."""
    return Network(demo_node, demo_facts)


@pytest.fixture(scope="session")
def main(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Network:
    """The network with splits, merges, extra currencies, and a library."""
    folder = shared / "node"
    target = tmp_path_factory.mktemp("main")
    return Network(unpack(folder / "localnet-db.tar.zst", target), folder)


@pytest.fixture(scope="session")
def frozen(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Network:
    """The network with frozen and unfrozen accounts."""
    folder = shared / "node" / "celldb-v2"
    target = tmp_path_factory.mktemp("frozen")
    return Network(unpack(folder / "localnet-celldbv2.tar.zst", target), folder)


@pytest.fixture(scope="session", params=["demo", "main", "frozen"])
def network(request: pytest.FixtureRequest) -> Network:
    """Each genuine network in turn."""
    found: Network = request.getfixturevalue(request.param)
    return found
