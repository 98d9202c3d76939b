"""The files of a commit: added and removed files, and the result of a failure."""

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.lake.rows import make_table
from tonlake.lake.file import datafile
from tonlake.lake.file.datafile import Changes, open_ahead, write_changes
from tonlake.lake.log.place import Derivation, NewFile, Place
from tonlake.lake.log.state import LogState
from tonlake.lake.settings import LakeSettings

PLACE = Place(1, 9, "2026-01-01")
NONE: frozenset[str] = frozenset()


def new_file(name: str, seed: int = 0) -> NewFile:
    return NewFile(name, PLACE, make_table(name, 1, 9, seed=seed))


def write(lake: Path, state: LogState, *files: NewFile, removed: frozenset[str] = NONE) -> Changes:
    return write_changes(lake, state, Derivation(files, removed), LakeSettings())


def test_the_same_rows_are_no_change(tmp_path: Path) -> None:
    first = write(tmp_path, LogState(), new_file("traces"))
    live = LogState(files=first.added)
    path = first.added[0].path
    (tmp_path / path).write_bytes(b"damaged")
    assert write(tmp_path, live, new_file("traces"), removed=frozenset({path})) == Changes((), ())
    assert (tmp_path / path).stat().st_size == first.added[0].bytes


def test_a_failure_leaves_what_was_live(tmp_path: Path) -> None:
    first = write(tmp_path, LogState(), new_file("traces"))
    live = LogState(files=first.added)

    def fail() -> Iterator[NewFile]:
        yield new_file("traces")
        yield new_file("messages")
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        write_changes(tmp_path, live, Derivation(fail(), NONE), LakeSettings())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [tmp_path / first.added[0].path]


@pytest.fixture
def all_ahead() -> Iterator[None]:
    """Treat every file as large."""
    with mock.patch.object(datafile, "PLAIN_ROWS", 0):
        yield


@pytest.mark.usefixtures("all_ahead")
def test_what_no_commit_takes_is_gone(tmp_path: Path) -> None:
    with open_ahead(tmp_path, LakeSettings()) as ahead:
        ahead.begin([new_file("traces")])
        ahead.wait()
        assert [path.name[:5] for path in tmp_path.rglob("*") if path.is_file()] == [".tmp-"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("all_ahead")
def test_a_file_that_a_sweep_took_is_written_again(tmp_path: Path) -> None:
    file = new_file("traces")
    with open_ahead(tmp_path, LakeSettings()) as ahead:
        ahead.begin([file])
        ahead.wait()
        for path in tmp_path.rglob(".tmp-*"):
            path.unlink()
        made = write_changes(tmp_path, LogState(), Derivation([file], NONE), LakeSettings(), ahead)
    assert (tmp_path / made.added[0].path).stat().st_size == made.added[0].bytes


@pytest.mark.usefixtures("all_ahead")
def test_a_full_disk_ahead_is_named(tmp_path: Path) -> None:
    (tmp_path / "traces").write_text("a file where a folder is to be")
    file = new_file("traces")
    with open_ahead(tmp_path, LakeSettings()) as ahead:
        ahead.begin([file])
        with pytest.raises(OSError, match="traces"):
            ahead.take(file)
