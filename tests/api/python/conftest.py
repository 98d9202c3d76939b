"""Lakes opened from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tonlake

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def lake(demo_lake: Path) -> tonlake.Lake:
    """The demo lake."""
    return tonlake.open(demo_lake)
