"""The application over the demo lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from lake.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def client(demo_lake: Path) -> Iterator[TestClient[Any]]:
    """Ask the API over the whole demo lake."""
    with TestClient(create_app(demo_lake, Settings())) as asker:
        yield asker
