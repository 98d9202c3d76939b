"""Durable files: complete or absent, locks, and clear errors on full disks."""

import errno
import os
import signal
from pathlib import Path

import pytest

from tonlake.lake.errors import LakeFull
from tonlake.lake.log.disk import VARIABLE, NewFiles, hold_lock, naming_full_disk, reach, unfinished


def count_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_no_room_is_named(code: int) -> None:
    with (
        pytest.raises(LakeFull, match=r"no room to write /lake/x .*free some space"),
        naming_full_disk(Path("/lake/x")),
    ):
        raise OSError(code, os.strerror(code))


def test_new_files_have_no_names_before_the_end(tmp_path: Path) -> None:
    finals = [tmp_path / str(number) for number in range(3)]
    with NewFiles("file") as files:
        for final in finals:
            files.write(final, final.name.encode())
        assert all(path.name.startswith(".tmp-") for path in tmp_path.iterdir())
        files.finish()
        assert sorted(tmp_path.iterdir()) == finals
    assert [final.read_text() for final in finals] == ["0", "1", "2"]


def test_of_many_new_files_few_are_open(tmp_path: Path) -> None:
    before = count_open()
    with NewFiles("file") as files:
        for number in range(150):
            files.write(tmp_path / str(number), b"abc")
            assert count_open() < before + 70
        files.finish()
    assert len(list(tmp_path.iterdir())) == 150
    assert count_open() == before


def test_failed_new_files_leave_no_temporary_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, calls = os.fsync, 0

    def fail(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(errno.ENOSPC, "full")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    before = count_open()
    with NewFiles("file") as files:
        for name in ("first", "second", "third"):
            files.write(tmp_path / name, b"abc")
        with pytest.raises(LakeFull, match=r"no room to write .*second"):
            files.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["first"]
    assert count_open() == before


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    with hold_lock(tmp_path / "lock") as held:
        assert held
        with hold_lock(tmp_path / "lock", wait=False) as second:
            assert not second
    with hold_lock(tmp_path / "lock", wait=False) as third:
        assert third


def test_unfinished_takes_the_place_only_when_all_went_well(tmp_path: Path) -> None:
    final = tmp_path / "final"
    with unfinished(final) as path:
        path.write_text("one")
        assert not final.exists()
    with pytest.raises(TypeError), unfinished(final) as path:
        path.write_bytes("two")  # type: ignore[arg-type]
    assert final.read_text() == "one"
    assert list(tmp_path.iterdir()) == [final]


def test_unfinished_names_the_file_that_a_full_disk_cuts() -> None:
    for name in ("/dev/full", "/none/x"):
        with pytest.raises(OSError, match=f"'{name}'"), unfinished(Path(name)) as path:
            path.write_bytes(b"one")


def test_unfinished_leaves_links_and_pipes_what_they_are(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(target)
    os.mkfifo(pipe)
    with unfinished(link) as path:
        path.write_text("one")
    assert link.is_symlink()
    assert target.read_text() == "one"
    with unfinished(pipe) as path:
        assert path == pipe
    assert pipe.is_fifo()


def test_reach_kills_only_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *args: killed.append(args))
    monkeypatch.delenv(VARIABLE, raising=False)
    reach("log.linked")
    monkeypatch.setenv(VARIABLE, "test.point:2")
    reach("log.linked")
    reach("test.point")
    assert killed == []
    reach("test.point")
    assert killed == [(os.getpid(), signal.SIGKILL)]
