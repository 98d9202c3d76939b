"""Lakes that the tests of this folder share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lake.rows import commit_rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake of three commits, masterchain blocks 1..30 but for the hole 11..15."""
    folder = tmp_path / "lake"
    for first, last in ((1, 10), (16, 20), (21, 30)):
        commit_rows(folder, first, last)
    return folder


@pytest.fixture(scope="session")
def read_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same lake, for tests that only read it."""
    folder = tmp_path_factory.mktemp("read") / "lake"
    for first, last in ((1, 10), (16, 20), (21, 30)):
        commit_rows(folder, first, last)
    return folder
