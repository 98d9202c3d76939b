"""Lakes opened from Python."""

from pathlib import Path

import pytest

import tonlake


@pytest.fixture(scope="session")
def lake(demo_lake: Path) -> tonlake.Lake:
    """The demo lake."""
    return tonlake.open(demo_lake)
