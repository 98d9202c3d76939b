"""Lakes shared by the tests of this folder."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def read_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A read-only lake of three commits, masterchain blocks 1..30 without 11..15."""
    from tests.lake.rows import commit_rows

    folder = tmp_path_factory.mktemp("read") / "lake"
    for first, last in ((1, 10), (16, 20), (21, 30)):
        commit_rows(folder, first, last)
    return folder


@pytest.fixture
def lake(read_lake: Path, tmp_path: Path) -> Path:
    """A writable copy of that lake."""
    return shutil.copytree(read_lake, tmp_path / "lake")
