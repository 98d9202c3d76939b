"""Genuine node databases of the reference data, unpacked once for all workers of a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import make_once, unpack

if TYPE_CHECKING:
    from tests.ingest.networks import Network
    from tonlake.ingest.source.node.statefile import NamedStates


GENUINE = {
    "main": ("localnet-db.tar.zst", "db", ""),
    "live-copy": ("localnet-db-live-copy.tar.zst", "db", ""),
    "celldb-v2": ("celldb-v2/localnet-celldbv2.tar.zst", "db", "celldb-v2"),
    "after-sigterm": ("celldb-v2/localnet-celldbv2.tar.zst", "db-after-sigterm", "celldb-v2"),
}
"""Archive, folder in it, and folder of the facts about it: celldb v1 and v2, killed or stopped."""


@pytest.fixture(scope="session")
def genuine(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, Path]]:
    """Return a function from a name in GENUINE to its database, for reading, and its facts."""

    def find(name: str) -> tuple[Path, Path]:
        archive, folder, facts = GENUINE[name]
        packed = shared / "node" / archive
        home = make_once(tmp_path_factory, packed.name, partial(unpack, packed))
        (db_dir,) = (path for path in home.glob(f"*/{folder}") if path.is_dir())
        return db_dir, shared / "node" / facts

    return find


def _open_network(db_dir: Path, facts: Path) -> Network:
    from tests.ingest.networks import Network

    return Network(db_dir, facts)


@pytest.fixture(scope="session")
def demo(demo_node: Path, demo_facts: Path) -> Network:
    """The small network of the demo node."""
    return _open_network(demo_node, demo_facts)


@pytest.fixture(scope="session")
def main(genuine: Callable[[str], tuple[Path, Path]]) -> Network:
    """The network with splits, merges, extra currencies, and a library."""
    return _open_network(*genuine("main"))


@pytest.fixture(scope="session")
def frozen(genuine: Callable[[str], tuple[Path, Path]]) -> Network:
    """The network with frozen and unfrozen accounts."""
    return _open_network(*genuine("celldb-v2"))


@pytest.fixture(scope="session", params=["demo", "main", "frozen"])
def network(request: pytest.FixtureRequest) -> Network:
    """Each genuine network in turn."""
    found: Network = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def dataset(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo network in the form of the public data set; only for reading."""
    from tests.ingest.dataset.generate import write_dataset

    return write_dataset(demo_lake, tmp_path_factory.mktemp("dataset"))


@pytest.fixture(scope="session")
def named(demo_node: Path) -> NamedStates:
    """The states that a masterchain block of the demo node names, before the first split."""
    from tonlake.ingest.source.node.source import open_node
    from tonlake.ingest.source.node.statefile import name_states

    with closing(open_node(demo_node)) as source:
        return name_states(source, 99)
