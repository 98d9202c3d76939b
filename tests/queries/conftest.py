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
    from tests.lake.opened import open_views
    from tonlake.lake.log.snapshot import open_snapshot
    from tonlake.queries.reader import Reader

    return Reader(snapshot := open_snapshot(demo_lake), open_views(snapshot))
