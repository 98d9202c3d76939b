"""Stores are followed while they are written, and are never changed."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rocksdict import WriteBatch

from tests.commands import run_program
from tests.damage import flip, flip_file
from tests.ingest.source.node.conftest import fingerprint
from tests.ingest.source.node.nodewriter import open_store
from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.rocks import FollowedStore, FrozenStore, Scratch, Store


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Scratch()
    yield made
    made.close()
    assert not made.folder.exists()


def fill(folder: Path, count: int) -> None:
    store = open_store(folder, buffer_bytes=1 << 14)
    batch = WriteBatch(raw_mode=True)
    for number in range(count):
        batch[b"%06d" % number] = b"v" * 50
    store.write(batch)
    store.close()


@pytest.mark.parametrize("kind", [FollowedStore, FrozenStore])
def test_a_stopped_store_is_read_whole_and_not_touched(
    tmp_path: Path, scratch: Scratch, kind: type[Store]
) -> None:
    folder = tmp_path / "db"
    fill(folder, 500)
    for name in ("000123.log.trash", "000999.sst.trash"):
        (folder / name).touch()  # a read-write open would remove these
    before = fingerprint(folder)
    store = kind(folder, "db", scratch)
    assert [key for key, _value in store.scan()] == [b"%06d" % n for n in range(500)]
    assert [key for key, _value in store.scan(b"00049")] == [b"%06d" % n for n in range(490, 500)]
    assert store.get(b"000007") == b"v" * 50
    assert store.get(b"none") is None
    store.close()
    assert fingerprint(folder) == before
    with pytest.raises(SourceError, match="closed"):
        store.get(b"000007")


def test_a_folder_that_may_not_be_written_is_read(tmp_path: Path, scratch: Scratch) -> None:
    folder = tmp_path / "db"
    fill(folder, 10)
    folder.chmod(0o555)
    store = FollowedStore(folder, "db", scratch)
    assert store.get(b"000001") is not None
    store.close()
    folder.chmod(0o755)


def test_what_the_owner_writes_is_seen_after_each_catch_up(
    tmp_path: Path, scratch: Scratch
) -> None:
    owner = open_store(tmp_path / "db", buffer_bytes=1 << 14)
    owner[b"status"] = b"0"
    store = FollowedStore(tmp_path / "db", "db", scratch)
    assert store.catch_up() is False
    for number in range(1, 150):
        owner[b"%06d" % number] = b"x" * 200
        owner[b"status"] = b"%d" % number
        if number % 40 == 0:
            owner.compact_range(None, None)
        elif number % 7 == 0:
            owner.flush()
        if number % 3 == 0:
            assert store.catch_up() is True
            # A value that is written over must not come back from a log that is gone.
            assert store.get(b"status") == b"%d" % number
            assert sum(1 for _ in store.scan(b"0")) == number
    owner.close()
    store.close()


def test_a_replaced_store_is_reopened(tmp_path: Path, scratch: Scratch) -> None:
    folder = tmp_path / "db"
    fill(folder, 20)
    store = FollowedStore(folder, "db", scratch)
    shutil.rmtree(folder)
    fill(folder, 5)
    assert store.catch_up()
    assert sum(1 for _ in store.scan()) == 5
    shutil.rmtree(folder)
    with pytest.raises(SourceError, match="db: no readable RocksDB"):
        store.catch_up()
    store.close()


def test_tables_the_owner_deleted_stay_readable(tmp_path: Path, scratch: Scratch) -> None:
    owner = open_store(tmp_path / "db", buffer_bytes=1 << 14)
    rows, deletions = WriteBatch(raw_mode=True), WriteBatch(raw_mode=True)
    for number in range(300):
        rows[b"%06d" % number] = b"x" * 200
        deletions.delete(b"%06d" % number)
    owner.write(rows)
    owner.flush()
    store = FrozenStore(tmp_path / "db", "db", scratch)
    owner.write(deletions)
    owner.compact_range(None, None)
    owner.close()
    assert sum(1 for _ in store.scan()) == 300
    store.close()


@pytest.mark.parametrize("content", [b"", b"\x00", b"nonsense\n", b"MANIFEST-000999\n", None])
def test_a_folder_without_a_readable_store_is_refused(
    tmp_path: Path, scratch: Scratch, content: bytes | None
) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    if content is not None:
        (folder / "CURRENT").write_bytes(content)
    with pytest.raises(SourceError, match="db"):
        FollowedStore(folder, "db", scratch)


def test_a_damaged_manifest_is_named_where_the_node_has_it(
    tmp_path: Path, scratch: Scratch
) -> None:
    folder = tmp_path / "db"
    fill(folder, 10)
    (manifest,) = folder.glob("MANIFEST-*")
    manifest.write_bytes(b"")
    with pytest.raises(SourceError, match=str(manifest)):
        FollowedStore(folder, "db", scratch)


def test_damaged_tables_are_reported(tmp_path: Path, scratch: Scratch) -> None:
    folder = tmp_path / "db"
    fill(folder, 2000)
    largest = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    for at in range(100, len(content) // 2, 500):
        content[at] ^= 0x10
    largest.write_bytes(content)
    store = FollowedStore(folder, "db", scratch)
    with pytest.raises(SourceError, match=r"db: .*[Cc]orrupt"):
        list(store.scan())
    store.close()


def test_a_damaged_table_is_not_passed_over_for_older_rows(
    tmp_path: Path, scratch: Scratch
) -> None:
    owner = open_store(tmp_path / "db")
    for round_number in range(2):
        owner[b"status"] = b"%d" % round_number
        owner.flush()
    owner.close()
    newest = max((tmp_path / "db").glob("*.sst"))
    flip_file(newest, -20)
    with pytest.raises(SourceError, match="db: "):
        FollowedStore(tmp_path / "db", "db", scratch)


@pytest.mark.parametrize("kind", [FollowedStore, FrozenStore])
def test_a_cut_log_gives_its_beginning_and_a_damaged_log_nothing(
    tmp_path: Path, scratch: Scratch, kind: type[Store]
) -> None:
    owner = open_store(tmp_path / "owner")
    for number in range(100):
        owner[b"%06d" % number] = b"v" * 50
    folder = tmp_path / "db"
    shutil.copytree(tmp_path / "owner", folder)
    owner.close()
    (log,) = folder.glob("*.log")
    whole = log.read_bytes()
    for size in range(0, len(whole), 701):
        log.write_bytes(whole[:size])
        store = kind(folder, "db", scratch)
        keys = [key for key, _value in store.scan()]
        assert keys == [b"%06d" % number for number in range(len(keys))]
        assert len(keys) == size // (len(whole) // 100)
        store.close()
    for at in range(20, len(whole) // 2, 397):
        log.write_bytes(flip(whole, at, 2))
        with pytest.raises(SourceError, match=r"db: .*[Cc]orrupt"):
            kind(folder, "db", scratch)


def test_a_log_with_bytes_too_many_does_not_hang(tmp_path: Path, scratch: Scratch) -> None:
    """RocksDB reads some such logs for ever, deaf to signals."""
    owner = open_store(tmp_path / "db")
    for number in range(2000):
        owner[b"%d" % number] = number.to_bytes(4, "big") * 40
    owner.flush_wal(sync=False)
    (log,) = (tmp_path / "db").glob("*.log")
    sound = log.read_bytes()
    assert len(sound) > 8 << 15
    assert len(list(FollowedStore(tmp_path / "db", "db", scratch).scan())) == 2000
    for at in range(3, 6 << 15, 9973):
        log.write_bytes(sound[:at] + sound[-2000:] + sound[at:])
        with pytest.raises(SourceError, match=rf"db/{log.name}: damaged: .* byte \d+ is torn"):
            FollowedStore(tmp_path / "db", "db", scratch)
    log.write_bytes(sound)
    owner.close()


def test_a_log_in_the_file_of_an_earlier_one(tmp_path: Path, scratch: Scratch) -> None:
    """Behind its records are those of the earlier log, cut anywhere."""
    owner = open_store(tmp_path / "db", recycled_logs=1)
    for number in range(2000):
        owner[b"%04d" % number] = number.to_bytes(4, "big") * 40
    owner.flush_wal(sync=False)
    (log,) = (tmp_path / "db").glob("*.log")
    sound = log.read_bytes()
    newest = 3 << 15
    log.write_bytes(sound[:newest] + sound[newest + 100 :])
    keys = [key for key, _ in FollowedStore(tmp_path / "db", "db", scratch).scan()]
    assert keys == [b"%04d" % number for number in range(len(keys))]
    assert 300 < len(keys) < 1000
    log.write_bytes(sound)
    owner.close()


def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import os; from tonlake.ingest.source.node.rocks import Scratch;"
        "s = Scratch(); s.new_folder();"
    )
    left = run_program(
        sys.executable,
        "-c",
        code + "print(s.folder); os.sys.stdout.flush(); os._exit(9)",
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ).stdout.strip()
    assert [str(path) for path in tmp_path.iterdir()] == [left]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    living, other = Scratch(), Scratch()
    assert set(tmp_path.iterdir()) == {living.folder, other.folder}
    other.close()
    assert set(tmp_path.iterdir()) == {living.folder}
    living.close()
    assert not list(tmp_path.iterdir())


CHURN = """
from tonlake.ingest.source.node.rocks import Scratch
for _ in range(200):
    scratch = Scratch()
    scratch.new_folder()
    scratch.close()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_many_processes_at_once_leave_each_other_alone(temporary: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", CHURN], stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    assert not list(temporary.iterdir())
