"""A reader over the demo lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lake.snapshot import open_snapshot
from queries.reader import Reader
from tests.queries.holdings import open_held

if TYPE_CHECKING:
    from pathlib import Path

    from tests.queries.holdings import Held


@pytest.fixture(scope="session")
def reader(demo_lake: Path) -> Reader:
    """Read the whole demo lake without a time limit."""
    snapshot = open_snapshot(demo_lake)
    return Reader(snapshot, snapshot.connect().cursor())


@pytest.fixture(scope="session", params=[None, 3], ids=["memory", "run and memory"])
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Held:
    """A lake of jettons and NFTs, read by look-ups and by queries."""
    return open_held(tmp_path_factory.mktemp("held") / "lake", request.param)
