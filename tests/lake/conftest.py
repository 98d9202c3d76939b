"""Lakes that the tests of this folder share."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.lake.rows import commit_rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def read_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three commits, masterchain blocks 1..30 but for the hole 11..15; for reading."""
    folder = tmp_path_factory.mktemp("read") / "lake"
    for first, last in ((1, 10), (16, 20), (21, 30)):
        commit_rows(folder, first, last)
    return folder


@pytest.fixture
def lake(read_lake: Path, tmp_path: Path) -> Path:
    """A copy of that lake, which a test may change."""
    return shutil.copytree(read_lake, tmp_path / "lake")
