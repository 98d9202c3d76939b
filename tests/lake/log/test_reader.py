"""A log read incrementally gives the same state as one read from the beginning."""

import shutil
from pathlib import Path

import pytest

from tests.lake.rows import commit_rows
from tonlake.lake.errors import LakeCorrupt, LakeNotFound, SnapshotNotFound
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.state import LOG_FOLDER, LogState, read_state


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "lake")
    assert reader.read() == LogState()
    for first in (1, 5, 9):
        commit_rows(tmp_path / "lake", first, first + 3)
        assert reader.read() == reader.read() == read_state(tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake")
    assert reader.read() == LogState()
    commit_rows(tmp_path / "lake", 1, 2)
    assert reader.read() == read_state(tmp_path / "lake")


def test_any_commit_is_found(tmp_path: Path) -> None:
    reader = LogReader(tmp_path)
    with pytest.raises(LakeNotFound):
        reader.find()
    for first in (1, 5, 9):
        commit_rows(tmp_path, first, first + 3)
    for number in (2, 3, 1, 3):
        assert reader.find(number) == read_state(tmp_path, number)
    assert reader.find() == read_state(tmp_path)
    commit_rows(tmp_path, 13, 14)
    assert reader.find(3) == read_state(tmp_path, 3)
    with pytest.raises(SnapshotNotFound):
        reader.find(5)


def test_an_entry_of_another_lake_is_refused(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "one")
    for name, seed in (("one", 1), ("two", 2)):
        commit_rows(tmp_path / name, 1, 2, seed=seed)
    assert reader.read().number == 1
    commit_rows(tmp_path / "two", 3, 4)
    shutil.copy(tmp_path / f"two/{LOG_FOLDER}/2.json", tmp_path / f"one/{LOG_FOLDER}/2.json")
    with pytest.raises(LakeCorrupt, match="does not follow entry 1"):
        reader.read()
