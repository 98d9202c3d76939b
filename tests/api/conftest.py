"""The application over the demo lake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from litestar.testing import TestClient

    from tests.api.growth import Growth


LAST_BLOCK, BLOCKS_PER_COMMIT = 90, 15


@pytest.fixture(scope="session")
def client(demo_lake: Path) -> Iterator[TestClient[Any]]:
    """A client of the API over the whole demo lake."""
    from litestar.testing import TestClient

    from tests.patience import PATIENT
    from tonlake.api.app import create_app

    with TestClient(create_app(demo_lake, PATIENT)) as asker:
        yield asker


@pytest.fixture(scope="session")
def many_commits(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first blocks of the demo node in small commits."""
    from tests.ingest.whole import ingest_node
    from tests.patience import compose

    lake_dir = tmp_path_factory.mktemp("many-commits")
    settings = compose(
        ingest={
            "mc_blocks_per_commit": BLOCKS_PER_COMMIT,
            "mc_blocks_per_chunk": BLOCKS_PER_COMMIT,
        },
        lake={"build_index": False},
    )
    ingest_node(demo_node, lake_dir, settings, last=LAST_BLOCK)
    return lake_dir


@pytest.fixture
def growth(many_commits: Path, tmp_path: Path) -> Growth:
    """A lake without any published commit."""
    from tests.api.growth import Growth

    return Growth(many_commits, tmp_path / "lake")
