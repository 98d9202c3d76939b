"""Verify finds all kinds of damage, and none in an intact lake."""

import hashlib
import random
from pathlib import Path
from unittest import mock

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.damage import flip
from tests.lake.rows import commit_rows, file_bytes
from tonlake.lake.commit import commit
from tonlake.lake.duck.views import write_views
from tonlake.lake.log.envelope import encode_entry
from tonlake.lake.log.state import VIEWED_FILE, Commit, read_checkpoint, read_commit
from tonlake.lake.maintenance.verify import Damage, verify_lake

every_two = mock.patch.object(commit, "CHECKPOINT_COMMITS", 2)

FEW_TABLES = ("blocks", "transactions", "state_cells", "transaction_traces", "wallets")


def rewrite(lake: Path, commit: Commit) -> None:
    """Replace the entry of commit ``number`` with one that has a valid digest."""
    (lake / "_log" / f"{commit.number}.json").write_bytes(encode_entry(commit)[0])


def test_a_sound_lake(read_lake: Path) -> None:
    steps: list[tuple[int, int]] = []
    report = verify_lake(read_lake, lambda done, total: steps.append((done, total)))
    assert (report.commits, report.damage, report.orphans) == (3, [], [])
    files = [file for at in (1, 2, 3) for file in read_commit(read_lake, at)[0].added]
    assert report.files == len(files)
    assert report.rows == sum(file.rows for file in files)
    assert report.bytes == sum(file.bytes for file in files)
    assert steps == [(at, len(files)) for at in range(1, len(files) + 1)]


@every_two
def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    """Covers every kind of file in a lake, log and checkpoints included."""
    for at in range(1, 4):
        commit_rows(tmp_path, at, at, rows=1, tables=FEW_TABLES)
    rng = random.Random(7)  # noqa: S311 - a seed, no secret
    files = {path: data for path, data in file_bytes(tmp_path).items() if data}
    for path, data in files.items():
        for _ in range(10):
            at, bit = rng.randrange(len(data)), rng.randrange(8)
            (tmp_path / path).write_bytes(flip(data, at, 1 << bit))
            found = {damage.file for damage in verify_lake(tmp_path).damage}
            # The last byte of an entry is a line end: any white space there means the same.
            assert path in found or at == len(data) - 1
        (tmp_path / path).write_bytes(data)
    assert verify_lake(tmp_path).damage == []


@every_two
def test_a_checkpoint_that_a_writer_removes_meanwhile_is_no_damage(tmp_path: Path) -> None:
    for at in range(1, 6):
        commit_rows(tmp_path, at, at, rows=1, tables=FEW_TABLES)

    def remove_and_read(lake_dir: Path, number: int) -> object:
        (lake_dir / "_log" / f"{number}.checkpoint.json").unlink()
        return read_checkpoint(lake_dir, number)

    with mock.patch("tonlake.lake.maintenance.verify.read_checkpoint", remove_and_read):
        report = verify_lake(tmp_path)
    assert (report.commits, report.damage) == (5, [])


@every_two
def test_a_newest_entry_that_a_checkpoint_names_is_missed(tmp_path: Path) -> None:
    for at in range(1, 5):
        commit_rows(tmp_path, at, at, rows=1, tables=FEW_TABLES)
    (tmp_path / "_log" / "4.json").unlink()
    assert [damage.file for damage in verify_lake(tmp_path).damage] == ["_log/4.json"]


def test_lost_and_cut_files_are_found(lake: Path) -> None:
    files = [file.path for file in read_commit(lake, 2)[0].added]
    (lake / files[0]).unlink()
    (lake / files[1]).write_bytes((lake / files[1]).read_bytes()[:-1])
    (lake / "_log" / "1.json").unlink()
    found = {damage.file: damage.reason for damage in verify_lake(lake).damage}
    assert set(found) == {files[0], files[1], "_log/1.json"}
    assert "No such file" in found[files[0]]
    assert "bytes instead of" in found[files[1]]
    assert found["_log/1.json"] == "it is missing"


def test_rows_must_be_as_many_as_committed(lake: Path) -> None:
    commit = read_commit(lake, 3)[0]
    wrong = msgspec.structs.replace(commit.added[0], rows=99)
    rewrite(lake, msgspec.structs.replace(commit, added=(wrong, *commit.added[1:])))
    assert verify_lake(lake).damage == [Damage(wrong.path, "it has 20 rows instead of 99")]


def test_a_file_committed_as_something_else(lake: Path, tmp_path: Path) -> None:
    text = tmp_path / "lake" / "blocks" / "day=2024-01-22" / "21-30-text.parquet"
    text.write_bytes(b"no parquet")
    commit = read_commit(lake, 3)[0]
    file = msgspec.structs.replace(
        commit.added[0],
        path=str(text.relative_to(lake)),
        bytes=10,
        sha256=hashlib.sha256(b"no parquet").hexdigest(),
    )
    rewrite(lake, msgspec.structs.replace(commit, added=(*commit.added, file)))
    (damage,) = verify_lake(lake).damage
    assert damage.file == file.path
    assert "not a Parquet file" in damage.reason
    with pytest.raises(pa.ArrowInvalid):
        pq.read_metadata(text)


def test_entries_that_do_not_follow_each_other(lake: Path) -> None:
    second, third = (read_commit(lake, at)[0] for at in (2, 3))
    rewrite(lake, msgspec.structs.replace(second, source={"kind": "another"}))
    assert verify_lake(lake).damage == [
        Damage("_log/3.json", "it does not follow the previous entry")
    ]
    rewrite(lake, second)
    rewrite(lake, msgspec.structs.replace(third, first_mc_seqno=18))
    assert verify_lake(lake).damage == [Damage("_log/3.json", "its range 18..30 overlaps 16..20")]


@every_two
def test_checkpoints_are_compared_with_the_entries(tmp_path: Path) -> None:
    for at in range(1, 4):
        commit_rows(tmp_path, at, at, rows=1, tables=["blocks"])
    state = read_checkpoint(tmp_path, 2)
    wrong = msgspec.structs.replace(state, files=state.files[:1])
    path = tmp_path / "_log" / "2.checkpoint.json"
    path.write_bytes(encode_entry(wrong)[0])
    assert verify_lake(tmp_path).damage == [
        Damage("_log/2.checkpoint.json", "it is not the sum of the entries up to it")
    ]
    path.write_bytes(encode_entry(state)[0])
    (tmp_path / "_log" / "1.json").write_text("{}")
    report = verify_lake(tmp_path)
    assert [damage.file for damage in report.damage] == ["_log/1.json"]
    assert (report.files, report.orphans) == (3, [])


def test_files_of_an_unreadable_entry_are_not_unused(lake: Path) -> None:
    (lake / "_log" / "2.json").write_text("{")
    report = verify_lake(lake)
    assert [damage.file for damage in report.damage] == ["_log/2.json"]
    assert report.orphans == []


def test_every_flipped_bit_of_the_hand_off_files_is_found(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    commit_rows(lake, 1, 10, tables=["blocks"])  # verified a hundred times
    views, catalog = write_views(lake)
    assert verify_lake(lake).damage == []
    rng = random.Random(8)  # noqa: S311 - a seed, no secret
    for path in (views, catalog, lake / VIEWED_FILE):
        data = path.read_bytes()
        tail = len(data) - 300  # the digests themselves among them
        for at in [*rng.sample(range(len(data)), 14), *rng.sample(range(tail, len(data)), 14)]:
            path.write_bytes(flip(data, at, 1 << rng.randrange(8)))
            (damage,) = verify_lake(lake).damage
            assert damage.file == str(path.relative_to(lake))
            assert "`tonlake views` rewrites it" in damage.reason
        path.write_bytes(data)
    assert verify_lake(lake).damage == []


def test_hand_off_files_that_are_missing_or_older(lake: Path) -> None:
    views, catalog = write_views(lake)
    sealed, whole = views.read_bytes(), catalog.read_bytes()
    catalog.unlink()
    assert [damage.file for damage in verify_lake(lake).damage] == ["catalog.duckdb"]
    catalog.mkdir()
    assert [damage.file for damage in verify_lake(lake).damage] == ["catalog.duckdb"]
    catalog.rmdir()
    views.unlink()
    assert verify_lake(lake).damage == []
    catalog.write_bytes(whole)
    assert [damage.file for damage in verify_lake(lake).damage] == ["views.sql"]
    views.write_bytes(sealed[: sealed.index(b"-- SHA-256")])
    (damage,) = verify_lake(lake).damage
    assert "does not end with its digest" in damage.reason
    write_views(lake)
    assert verify_lake(lake).damage == []


def test_reading_the_catalogue_does_not_change_it(lake: Path) -> None:
    _views, catalog = write_views(lake)
    with duckdb.connect(str(catalog)) as connection:
        assert connection.execute("select count(*) from blocks").fetchone() == (25,)
    assert verify_lake(lake).damage == []
