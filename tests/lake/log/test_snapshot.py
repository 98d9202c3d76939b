"""Snapshots: a reader's view, damage to single files, one digest check per file."""

import os
import random
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from tests.damage import flip_file
from tests.lake.rows import commit_rows
from tests.made.files import TABLES_MADE, ManyFiles
from tonlake.lake.duck.connection import connect, find_damage_behind
from tonlake.lake.errors import LakeCorrupt, LakeNotFound, SnapshotNotFound
from tonlake.lake.log import digest
from tonlake.lake.log.snapshot import Snapshot, open_snapshot, parse_days
from tonlake.lake.log.state import DataFile, LogReader, NetworkId, read_state
from tonlake.lake.schema import TABLES


def test_facts_of_a_snapshot(read_lake: Path) -> None:
    snapshot = open_snapshot(read_lake)
    assert snapshot.number == 3
    assert snapshot.ranges == ((1, 10), (16, 30))
    assert (snapshot.first_mc_seqno, snapshot.last_mc_seqno) == (1, 30)
    assert snapshot.state.network == NetworkId(-239)
    assert {name: len(files) for name, files in snapshot.files.items()} == dict.fromkeys(TABLES, 3)
    assert [commit.number for commit in snapshot.commits] == [1, 2, 3]
    assert snapshot.damaged == {}


def test_older_snapshots_stay(read_lake: Path) -> None:
    snapshot = open_snapshot(read_lake, 1)
    assert snapshot.ranges == ((1, 10),)
    newest = "select max(seqno) from blocks"
    assert connect(snapshot, statement=newest).execute(newest).fetchall() == [(10,)]


def test_nothing_to_open(tmp_path: Path, read_lake: Path) -> None:
    with pytest.raises(LakeNotFound):
        open_snapshot(tmp_path)
    with pytest.raises(SnapshotNotFound):
        open_snapshot(read_lake, 9)


@pytest.mark.parametrize("name", TABLES)
def test_a_damaged_file_stops_its_table_alone(lake: Path, name: str) -> None:
    file = open_snapshot(lake).files[name][1]
    flip_file(lake / file.path, file.bytes // 2)
    snapshot = open_snapshot(lake)
    assert list(snapshot.damaged) == [name]
    others = sorted(TABLES.keys() - {name})
    some = random.Random(name).sample(others, 4)  # noqa: S311 - a repeatable choice
    connection = connect(snapshot, tables=(name, *some), statement=", ".join((name, *some)))
    for other in some:
        connection.execute("select count(*) from query_table($name)", {"name": other})
    with pytest.raises(duckdb.CatalogException) as caught:
        connection.execute("select count(*) from query_table($name)", {"name": name})
    damage = find_damage_behind(snapshot, caught.value)
    assert isinstance(damage, LakeCorrupt)
    assert damage.file == file.path
    assert file.path in str(damage)


def test_views_over_a_damaged_table_are_blamed_too(lake: Path) -> None:
    file = open_snapshot(lake).files["account_states"][0]
    (lake / file.path).unlink()
    snapshot = open_snapshot(lake)
    with pytest.raises(duckdb.CatalogException) as caught:
        connect(snapshot).execute("from latest_account_states")
    damage = find_damage_behind(snapshot, caught.value)
    assert damage is not None
    assert "cannot be read (No such file or directory)" in str(damage)


@pytest.mark.parametrize("query", ["from nowhere", "select nothing from blocks", "selec"])
def test_no_damage_is_blamed_for_other_faults(lake: Path, query: str) -> None:
    flip_file(lake / open_snapshot(lake).files["libraries"][0].path, 50)
    snapshot = open_snapshot(lake)
    with pytest.raises(duckdb.Error) as caught:
        connect(snapshot, statement=query).execute(query)
    assert find_damage_behind(snapshot, caught.value) is None


def test_every_kind_of_damage_is_seen(lake: Path) -> None:
    files = open_snapshot(lake).files
    longer, shorter, gone, folder = (
        lake / files[name][0].path for name in ("blocks", "messages", "libraries", "state_cells")
    )
    longer.write_bytes(longer.read_bytes() + b"x")
    shorter.write_bytes(shorter.read_bytes()[:-1])
    gone.unlink()
    folder.unlink()
    folder.mkdir()
    damaged = open_snapshot(lake).damaged
    assert set(damaged) == {"blocks", "messages", "libraries", "state_cells"}
    assert "bytes instead of" in damaged["blocks"].reason
    assert "bytes instead of" in damaged["messages"].reason
    assert "No such file" in damaged["libraries"].reason


def test_a_file_is_hashed_once_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_rows(tmp_path, 1, 5)
    assert not open_snapshot(tmp_path).damaged
    hashed = []
    real = digest._check_file

    def counting(root: str, file: DataFile) -> LakeCorrupt | None:
        hashed.append(file)
        return real(root, file)

    monkeypatch.setattr(digest, "_check_file", counting)
    open_snapshot(tmp_path)
    assert hashed == []
    commit_rows(tmp_path, 6, 9)
    open_snapshot(tmp_path)
    assert len(hashed) == len(TABLES)
    os.utime(tmp_path / open_snapshot(tmp_path).files["blocks"][0].path)
    open_snapshot(tmp_path)
    assert len(hashed) == len(TABLES) + 1


def test_files_asked_about_long_ago_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "_SPARE", 0)
    known = digest._Sound()
    monkeypatch.setattr(digest, "_sound", known)
    for name in ("one", "two", "three", "two"):
        if not (tmp_path / name).exists():
            commit_rows(tmp_path / name, 1, 2)
        snapshot = open_snapshot(tmp_path / name)
        files = [file for group in snapshot.files.values() for file in group]
        assert len(files) <= len(known.facts) <= 2 * len(files)
    assert {path.split("/")[-4] for path in known.facts} == {"two", "three"}
    for file in files[:3] * 3:
        assert digest.find_damage(tmp_path / "two", [file], trust_earlier=True) == []
    assert {f"{tmp_path}/two/{file.path}" for file in files} <= known.facts.keys()


def test_digests_can_be_left_unchecked(lake: Path) -> None:
    file = open_snapshot(lake).files["blocks"][0]
    flip_file(lake / file.path, file.bytes // 2)
    assert open_snapshot(lake, check_digests=False).damaged == {}


def test_files_of_an_unknown_table_are_left_alone(read_lake: Path) -> None:
    state = read_state(read_lake)
    path = state.files[0].path.replace(state.files[0].table, "weather")
    later = msgspec.structs.replace(state.files[0], table="weather", path=path)
    snapshot = Snapshot(read_lake, msgspec.structs.replace(state, files=(*state.files, later)))
    assert snapshot.files == open_snapshot(read_lake).files


def test_a_log_that_is_known_is_read_on(lake: Path) -> None:
    log = LogReader(lake)
    assert open_snapshot(lake, log=log).ranges == ((1, 10), (16, 30))
    commit_rows(lake, 31, 40, tables=["blocks"])
    assert open_snapshot(lake, log=log).ranges == ((1, 10), (16, 40))
    assert open_snapshot(lake, 1, log=log).ranges == ((1, 10),)


def list_looked_at(
    lake: Path, earlier: Snapshot, now_s: float, monkeypatch: pytest.MonkeyPatch
) -> set[str]:
    """Return the files whose status is read when a snapshot is opened after an earlier one."""
    knows = digest._Sound.knows
    seen = set()

    def noting(sound: digest._Sound, root: str, file: DataFile, known: dict[str, Any]) -> bool:
        seen.add(file.path)
        return knows(sound, root, file, known)

    with monkeypatch.context() as patch:
        patch.setattr(digest._Sound, "knows", noting)
        open_snapshot(lake, earlier=earlier, clock=iter([now_s, now_s + 1]).__next__)
    return seen


def test_files_that_were_looked_at_just_now_are_not_looked_at_again(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_snapshot(lake, clock=iter([100.0, 102.0]).__next__)
    assert first.checked_until_s == 142
    old = {file.path for file in first.state.files}
    commit_rows(lake, 31, 40, tables=["blocks", "messages"])
    new = {file.path for file in open_snapshot(lake).state.files} - old
    assert len(new) == 2
    assert list_looked_at(lake, first, 141.9, monkeypatch) == new
    assert list_looked_at(lake, first, 142.1, monkeypatch) == old | new
    later = open_snapshot(lake, earlier=first, clock=iter([110.0, 111.0]).__next__)
    assert later.checked_until_s == 142
    later.watch.damaged = True
    assert list_looked_at(lake, later, 120, monkeypatch) == old | new


def test_after_a_damaged_snapshot_all_files_are_looked_at(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = open_snapshot(lake).files["blocks"][0]
    flip_file(lake / file.path, file.bytes // 2)
    damaged = open_snapshot(lake, clock=iter([100.0, 102.0]).__next__)
    every = {file.path for file in damaged.state.files}
    assert list_looked_at(lake, damaged, 103, monkeypatch) == every
    flip_file(lake / file.path, file.bytes // 2)
    healed = open_snapshot(lake, earlier=damaged, clock=iter([103.0, 104.0]).__next__)
    assert healed.damaged == {}


def test_files_of_merges_and_segments_are_new(tmp_path: Path) -> None:
    state = ManyFiles(files=2 * len(TABLES_MADE), commits=8).make(tmp_path)
    before = open_snapshot(tmp_path, 3, check_digests=False)
    assert len(before.state.files) == 3 * len(TABLES_MADE)
    assert before.list_new(before.state) == []
    assert before.list_new(state) == [*state.files, *state.segments]
    assert open_snapshot(tmp_path, state.number - 1).list_new(state) == list(state.segments)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2024-01-01..2024-02-03", ("2024-01-01", "2024-02-03")),
        ("2024-01-01..", ("2024-01-01", None)),
        ("..2024-01-01", (None, "2024-01-01")),
        ("..", (None, None)),
        ("2024-01-01", ("2024-01-01", "2024-01-01")),
    ],
)
def test_days(text: str, days: tuple[str | None, str | None]) -> None:
    assert parse_days(text) == days


@pytest.mark.parametrize(
    "text", ["", "x", "2024-01-01..x", "2024-13-01", "2024-02-02..2024-02-01", "1..2", "2024-01"]
)
def test_no_days(text: str) -> None:
    with pytest.raises(ValueError, match=r"day|ends before"):
        parse_days(text)
