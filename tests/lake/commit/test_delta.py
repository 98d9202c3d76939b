"""Delta logs: each version reads as the snapshot it names, whatever happens to the lake."""

import json
import shutil
from collections.abc import Iterable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tests.commands import run
from tests.lake.killed import POINTS, run_killed
from tests.lake.rows import commit_rows, file_bytes
from tonlake.lake.commit import delta
from tonlake.lake.commit.delta import (
    FOLDER,
    POSITION_FILE,
    find_differences,
    list_published,
    publish,
)
from tonlake.lake.errors import LakeFull
from tonlake.lake.log.state import LogReader, read_state
from tonlake.lake.maintenance import compact
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.removal import prune_lake, undo_after
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings

SETTINGS = LakeSettings()
FEW = ("blocks", "transactions", "messages", "state_cells", "libraries")
Rows = list[dict[str, Any]]


def publish_now(lake: Path) -> None:
    publish(LogReader(lake), SETTINGS)


def list_versions(lake: Path, table: str) -> list[int]:
    return sorted(int(path.stem) for path in (lake / table / FOLDER).glob("*[0-9].json"))


def read_snapshot(lake: Path, table: str, number: int | None) -> list[str]:
    """Return the rows of a table as of one of our commits, the newest if None, from the files."""
    found: Rows = []
    for file in read_state(lake, number).by_table.get(table, ()):
        found += pq.ParquetFile(lake / file.path).read().to_pylist()
    return sorted(map(repr, found))


def read_delta(lake: Path, table: str, version: int | None = None) -> list[str]:
    names = TABLES[table].names
    rows = DeltaTable(lake / table, version=version).to_pyarrow_table().select(names)
    return sorted(map(repr, rows.to_pylist()))


def read_commit_of(lake: Path, table: str, version: int) -> int:
    text = (lake / table / FOLDER / f"{version:020}.json").read_text()
    number: int = json.loads(text.partition("\n")[0])["commitInfo"]["tonlakeCommit"]
    return number


def check(lake: Path, *, versions: str = "newest") -> None:
    """Compare the Delta logs with the lake's own snapshots, in all versions or the newest."""
    newest = read_state(lake)
    assert verify_lake(lake).damage == []
    for table in newest.by_table:
        assert read_delta(lake, table) == read_snapshot(lake, table, newest.number), table
        for version in list_versions(lake, table)[:-1] if versions == "all" else ():
            number = read_commit_of(lake, table, version)
            assert read_delta(lake, table, version) == read_snapshot(lake, table, number), table


def make(lake: Path, tables: Iterable[str] = FEW) -> Path:
    """Make a lake of three commits, each published."""
    for first, last in ((1, 10), (11, 20), (21, 30)):
        commit_rows(lake, first, last, day="2024-01-02", tables=tables)
        publish_now(lake)
    return lake


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of some tables."""
    return make(tmp_path_factory.mktemp("made") / "lake")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of all tables, for reading."""
    return make(tmp_path_factory.mktemp("whole") / "lake", tuple(TABLES))


@pytest.fixture
def published(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "lake"))


def test_every_version_is_a_snapshot(whole: Path) -> None:
    check(whole, versions="all")
    for table in TABLES:
        assert list_versions(whole, table) == [0, 1, 2]
        assert [read_commit_of(whole, table, version) for version in range(3)] == [1, 2, 3]


def test_columns_have_comments_and_files_have_bounds(published: Path) -> None:
    table = DeltaTable(published / "transactions")
    assert table.metadata().description == TABLES["transactions"].doc
    assert table.metadata().partition_columns == ["day"]
    comments = {field.name: field.metadata["comment"] for field in table.schema().fields}
    assert (
        comments.items() >= {each.name: each.doc for each in TABLES["transactions"].columns}.items()
    )
    adds = table.get_add_actions(flatten=True)
    for at, path in enumerate(adds["path"].to_pylist()):
        rows = pq.ParquetFile(published / "transactions" / path).read()["mc_seqno"].to_pylist()
        assert adds["min.mc_seqno"][at].as_py() == min(rows)
        assert adds["max.mc_seqno"][at].as_py() == max(rows)


def test_nothing_new_is_no_version(published: Path) -> None:
    before = file_bytes(published)
    publish_now(published)
    assert file_bytes(published) == before
    commit_rows(published, 31, 40, tables=["blocks"])
    publish_now(published)
    assert list_versions(published, "blocks") == [0, 1, 2, 3]
    assert list_versions(published, "messages") == [0, 1, 2]


def test_many_commits_at_once_are_one_version(published: Path) -> None:
    for first in (31, 41, 51):
        commit_rows(published, first, first + 9, tables=FEW)
    publish_now(published)
    assert list_versions(published, "messages") == [0, 1, 2, 3]
    check(published, versions="all")


def test_the_same_lake_has_the_same_log(published: Path, tmp_path: Path) -> None:
    copy = make(tmp_path / "copy")
    assert file_bytes(copy) == file_bytes(published)


def test_compaction_does_not_change_rows(published: Path) -> None:
    before = {table: read_delta(published, table) for table in FEW}
    assert compact_lake(published, SETTINGS).commits
    check(published, versions="all")
    for table in FEW:
        assert read_delta(published, table) == before[table] or table == "state_cells"
        assert DeltaTable(published / table).get_add_actions().num_rows == 1


def test_undone_blocks_are_gone(demo_lake: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(demo_lake, tmp_path / "lake")
    undo_after(lake, 150, SETTINGS, max_mc_blocks=100, source={}, reopen=lambda *_: ())
    check(lake, versions="all")
    assert max(DeltaTable(lake / "blocks").to_pyarrow_table()["mc_seqno"].to_pylist()) == 150


def test_pruned_blocks_are_gone(demo_lake: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(demo_lake, tmp_path / "lake")
    prune_lake(lake, 111, SETTINGS)
    check(lake, versions="all")


def test_a_moved_lake_is_readable(published: Path, tmp_path: Path) -> None:
    check(published.rename(tmp_path / "moved"), versions="all")


def test_a_pulled_lake_has_its_own_logs(published: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for table in ((), ("--tables", "transactions")):
        shutil.rmtree(copy, ignore_errors=True)
        arguments = ["pull", str(published), "--lake", str(copy), *table]
        assert run(*arguments).exit_code == 0
        check(copy)


@mock.patch.object(delta, "CHECKPOINT_VERSIONS", 3)
@mock.patch.object(delta, "KEPT_VERSIONS", 6)
def test_checkpoints_replace_old_versions(tmp_path: Path) -> None:
    for at in range(1, 15):
        commit_rows(tmp_path, at, at, rows=2, tables=FEW)
        publish_now(tmp_path)
    compact_lake(tmp_path, SETTINGS)
    check(tmp_path, versions="")
    assert list_versions(tmp_path, "libraries")[0] == 6
    assert len(list((tmp_path / "libraries" / FOLDER).glob("*.checkpoint.parquet"))) == 3
    for version in range(12, 14):
        expected = read_snapshot(tmp_path, "libraries", version + 1)
        assert read_delta(tmp_path, "libraries", version) == expected


def test_killed_publications_are_continued(published: Path) -> None:
    """The process dies at each point, in the first or in the third table."""
    commits, counts = iter(range(31, 1000, 10)), cycle((1, 3))
    for point in (each for each in POINTS if each.startswith("delta.")):
        count = next(counts)
        for is_killed in (True, False):
            first = next(commits)
            commit_rows(published, first, first + 9, tables=FEW)
            if is_killed:
                assert run_killed(lambda: publish_now(published), f"{point}:{count}"), point
        publish_now(published)
        for table in FEW:
            assert read_delta(published, table) == read_snapshot(published, table, None), point
    check(published, versions="all")
    sweep_orphans(published, LakeSettings(orphan_grace_s=0))
    assert not list(published.rglob(".tmp-*"))


def test_a_full_disk_stops_a_publication_between_versions(published: Path) -> None:
    commit_rows(published, 31, 40, tables=FEW)
    with (
        mock.patch.object(delta, "write_file", side_effect=LakeFull("no room")),
        pytest.raises(LakeFull),
    ):
        publish_now(published)
    publish_now(published)
    check(published, versions="all")
    assert list_versions(published, "messages") == [0, 1, 2, 3]


@pytest.mark.parametrize("damage", [None, b"", b"1\n", b"{}\n"])
def test_versions_without_a_position_stay(published: Path, damage: bytes | None) -> None:
    """Two publications die before their position; versions that stand never change, if sound."""
    folder = published / "blocks" / FOLDER
    for first in (31, 41):
        commit_rows(published, first, first + 9, tables=FEW)
        assert run_killed(lambda: publish_now(published), f"delta.created:{len(FEW) + 1}")
    before = file_bytes(folder)
    if damage is not None:
        (folder / f"{4:020}.json").write_bytes(damage)
    commit_rows(published, 51, 60, tables=FEW)
    publish_now(published)
    assert list_versions(published, "blocks") == ([*range(6)] if damage is None else [0])
    assert damage is not None or before.items() <= file_bytes(folder).items()
    check(published, versions="all")


def test_files_that_a_version_lists_are_not_swept(published: Path) -> None:
    with mock.patch.object(compact, "publish"):
        compact_lake(published, SETTINGS)
    sweep_orphans(published, LakeSettings(orphan_grace_s=0))
    assert read_delta(published, "messages") == read_snapshot(published, "messages", 3)
    publish_now(published)
    assert sweep_orphans(published, LakeSettings(orphan_grace_s=0))
    check(published)


DAMAGES = {
    "a version": (f"blocks/{FOLDER}/{1:020}.json", b"{"),
    "a missing version": (f"blocks/{FOLDER}/{1:020}.json", None),
    "the newest version": (f"blocks/{FOLDER}/{2:020}.json", None),
    "the position": (POSITION_FILE, b"{}"),
    "no position": (POSITION_FILE, None),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_mended(published: Path, name: str) -> None:
    file, data = DAMAGES[name]
    if data is None:
        (published / file).unlink()
    else:
        (published / file).write_bytes(data)
    found = verify_lake(published).damage
    assert found
    assert all("tonlake rebuild delta" in damage.reason for damage in found)
    assert run("rebuild", "delta", "--lake", published).exit_code == 0
    check(published)
    assert list_versions(published, "blocks") == [0]


def test_a_damaged_position_of_a_shortened_log(published: Path) -> None:
    state = read_state(published)
    (published / POSITION_FILE).write_bytes(b"{}")
    (published / "_log" / "1.json").unlink()
    with mock.patch.object(delta, "read_first", return_value=2):
        list_published(published, state)


def test_a_log_that_lists_other_files_is_named(published: Path) -> None:
    path = published / "blocks" / FOLDER / f"{2:020}.json"
    path.write_text(path.read_text().partition("\n")[0] + "\n")
    assert [file for file, _reason in find_differences(published)] == [f"blocks/{FOLDER}"]


def test_a_lake_with_another_history_is_published_again(published: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    commit_rows(other, 1, 10, seed=7, day="2024-01-02", tables=FEW)
    for table in FEW:
        shutil.copytree(published / table / FOLDER, other / table / FOLDER)
    shutil.copy(published / POSITION_FILE, other / POSITION_FILE)
    assert list(find_differences(other))
    publish_now(other)
    check(other)


def test_the_setting_removes_the_logs(published: Path) -> None:
    publish(LogReader(published), LakeSettings(delta=False))
    assert not list(published.rglob(FOLDER))
    assert not (published / POSITION_FILE).exists()
    assert verify_lake(published).damage == []


def test_no_other_writer_changes_a_table(published: Path) -> None:
    table = DeltaTable(published / "blocks")
    before = file_bytes(published)
    for change in (
        table.delete,
        table.optimize.compact,
        partial(table.vacuum, 0, dry_run=False),
    ):
        with pytest.raises(DeltaError):
            change()
    assert file_bytes(published) == before
