"""A reader over the demo lake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tonlake.queries.reader import Reader


@pytest.fixture(scope="session")
def reader(demo_lake: Path) -> Reader:
    """Read the whole demo lake without a time limit."""
    from tonlake.lake.duck.connection import connect
    from tonlake.lake.log.snapshot import open_snapshot
    from tonlake.queries.reader import Reader

    snapshot = open_snapshot(demo_lake)
    return Reader(snapshot, connect(snapshot).cursor())
