"""The log: entries, checkpoints, and the state that they add up to."""

import errno
import re
import shutil
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.rows import commit_rows
from tonlake.lake.commit import commit
from tonlake.lake.errors import LakeCorrupt, LakeNotFound, NetworkMismatch, SnapshotNotFound
from tonlake.lake.log.envelope import encode_entry, read_body
from tonlake.lake.log.ranges import merge_ranges, overlaps
from tonlake.lake.log.state import (
    LOG_FOLDER,
    Commit,
    DataFile,
    LogReader,
    LogState,
    NetworkId,
    find_paths,
    join_networks,
    leave_out,
    list_log,
    name_place,
    name_table,
    read_checkpoint,
    read_commit,
    read_state,
)
from tonlake.lake.maintenance.verify import verify_lake

RANGES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 8)).map(lambda at: (at[0], at[0] + at[1]))
)
every_two = mock.patch.object(commit, "CHECKPOINT_COMMITS", 2)


@given(RANGES)
def test_merged_ranges_are_the_same_seqnos(ranges: list[tuple[int, int]]) -> None:
    merged = merge_ranges(tuple(ranges))
    seqnos = {at for first, last in ranges for at in range(first, last + 1)}
    assert [at for first, last in merged for at in range(first, last + 1)] == sorted(seqnos)
    assert all(left[1] + 1 < right[0] for left, right in pairwise(merged))


@given(RANGES, st.integers(0, 70), st.integers(0, 9))
def test_overlaps_share_a_seqno(ranges: list[tuple[int, int]], first: int, more: int) -> None:
    wanted = set(range(first, first + more + 1))
    expected = [known for known in ranges if wanted & set(range(known[0], known[1] + 1))]
    assert overlaps(tuple(ranges), (first, first + more)) == expected


def test_networks_join_what_each_knows() -> None:
    full = NetworkId(-239, "aa", "bb")
    assert join_networks(None, None) is None
    assert join_networks(None, full) == full
    assert join_networks(full, None) == full
    assert join_networks(NetworkId(-239), full) == full
    assert join_networks(full, NetworkId(-239, "aa")) == full
    for other in (NetworkId(-3), NetworkId(-239, "cc"), NetworkId(-239, "aa", "cc")):
        with pytest.raises(NetworkMismatch, match="a separate lake"):
            join_networks(full, other)


def make_file(path: str) -> DataFile:
    return DataFile(path, name_table(path), 1, 1, "00", 1)


def make_commit(number: int, added: Iterable[str], removed: Iterable[str]) -> Commit:
    return Commit(
        number=number,
        first_mc_seqno=number,
        last_mc_seqno=number,
        day="2024-01-01",
        added=tuple(map(make_file, added)),
        removed=tuple(removed),
        network=None,
        previous="",
    )


def test_snapshots_that_are_not_there(read_lake: Path) -> None:
    for number in (-1, 0, 4):
        with pytest.raises(SnapshotNotFound, match=f"1 to 3, and no {number}"):
            read_state(read_lake, number)


@every_two
def test_checkpoints_equal_the_sum_of_entries(tmp_path: Path) -> None:
    for at in range(1, 6):
        commit_rows(tmp_path, at, at, rows=1)
    names = sorted(path.name for path in (tmp_path / "_log").glob("*.checkpoint.json"))
    assert names == ["2.checkpoint.json", "4.checkpoint.json"]
    states = [read_state(tmp_path, at) for at in range(1, 6)]
    first = tmp_path / "_log" / "1.json"
    entry = first.read_bytes()
    first.write_text("{}")  # a checkpoint saves reading the entries before it
    assert read_state(tmp_path) == states[-1]
    first.write_bytes(entry)
    for name in reversed(names):  # a damaged one only costs time
        (tmp_path / "_log" / name).write_text("{}")
        assert read_state(tmp_path) == states[-1]
        (tmp_path / "_log" / name).unlink()
    assert [read_state(tmp_path, at) for at in range(1, 6)] == states


@every_two
@mock.patch.object(commit, "KEPT_CHECKPOINTS", 3)
def test_of_checkpoints_of_long_ago_few_stay(tmp_path: Path) -> None:
    for at in range(1, 24):
        commit_rows(tmp_path, at, at, rows=1, tables=("blocks",))
    assert list_log(tmp_path) == ([*range(1, 24)], [6, 12, 14, 16, 18, 20, 22])
    states = [read_state(tmp_path, at) for at in range(1, 24)]
    for number in list_log(tmp_path)[1]:
        (tmp_path / "_log" / f"{number}.checkpoint.json").unlink()
    assert [read_state(tmp_path, at) for at in range(1, 24)] == states


@mock.patch.object(commit, "CHECKPOINT_COMMITS", 1)
@pytest.mark.parametrize("reader", [read_commit, read_checkpoint])
def test_every_flipped_bit_of_an_entry_is_found(tmp_path: Path, reader: object) -> None:
    assert callable(reader)
    commit_rows(tmp_path, 1, 1, rows=1)
    name = "1.json" if reader is read_commit else "1.checkpoint.json"
    path = tmp_path / "_log" / name
    whole = path.read_bytes()
    for at in range(0, len(whole) - 1, 13):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(LakeCorrupt, match=re.escape(f"_log/{name}")):
            reader(tmp_path, 1)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LakeCorrupt, match="not a log entry"):
        reader(tmp_path, 1)


@mock.patch.object(commit, "CHECKPOINT_COMMITS", 1)
def test_what_the_disk_cannot_read_is_damage(tmp_path: Path) -> None:
    """A folder in its place is refused as a bad sector is; too many open files are no damage."""
    for number in (1, 2):
        commit_rows(tmp_path, number, number, rows=1)
    state, log = read_state(tmp_path), tmp_path / "_log"
    (log / "2.checkpoint.json").unlink()
    (log / "2.checkpoint.json").mkdir()
    assert read_state(tmp_path) == state
    (log / "2.json").unlink()
    (log / "2.json").mkdir()
    with pytest.raises(LakeCorrupt, match=r"_log/2\.json: it cannot be read \(Is a directory\)"):
        read_state(tmp_path)
    damage = verify_lake(tmp_path).damage
    assert {"_log/2.json", "_log/2.checkpoint.json"} <= {one.file for one in damage}
    error = OSError(errno.EMFILE, "many")
    with (
        mock.patch.object(Path, "read_bytes", side_effect=error),
        pytest.raises(OSError, match="many"),
    ):
        read_state(tmp_path)


def test_an_entry_of_another_number_or_lake(lake: Path, tmp_path: Path) -> None:
    log = lake / "_log"
    second = (log / "2.json").read_bytes()
    (log / "2.json").write_bytes((log / "1.json").read_bytes())
    with pytest.raises(LakeCorrupt, match="it is commit 1"):
        read_state(lake)
    (log / "3.checkpoint.json").write_bytes(encode_entry(LogState(number=2))[0])
    with pytest.raises(LakeCorrupt, match="the checkpoint of 2"):
        read_checkpoint(lake, 3)
    (log / "2.json").unlink()
    with pytest.raises(LakeCorrupt, match=r"2\.json: it is missing"):
        read_state(lake)
    commit_rows(tmp_path / "other", 1, 10, seed=1)
    (log / "2.json").write_bytes(second)
    (log / "1.json").write_bytes((tmp_path / "other" / "_log" / "1.json").read_bytes())
    with pytest.raises(LakeCorrupt, match=r"2\.json: it does not follow entry 1"):
        read_state(lake)


def test_other_files_in_the_log_are_let_be(lake: Path) -> None:
    for name in ("03.json", "x.json", "7.json.bak", "0.json", "note"):
        (lake / "_log" / name).write_text("")
    assert read_state(lake).number == 3


PATHS = [
    f"{table}/day=2024-01-0{day}/{at}-{at}-{at:02x}.parquet"
    for table in ("blocks", "traces")
    for day in (1, 2, 3)
    for at in (1, 2, 3)
]
CHANGES = st.lists(st.sets(st.sampled_from(PATHS), max_size=6), max_size=8)


def make_commits(toggled: list[set[str]]) -> list[tuple[Commit, str]]:
    """Return commits that remove the live files of some paths, and add the others."""
    live: set[str] = set()
    made = []
    for number, paths in enumerate(toggled, 1):
        commit = make_commit(number, sorted(paths - live), sorted(paths & live))
        made.append((commit, f"digest {number}"))
        live ^= paths
    return made


@given(CHANGES)
def test_many_commits_at_once_are_one_after_the_other(toggled: list[set[str]]) -> None:
    commits = make_commits(toggled)
    step_by_step = LogState()
    for entry in commits:
        step_by_step = step_by_step.add(entry)
    assert LogState().add(*commits) == step_by_step
    live: list[str] = []
    for change, _ in commits:
        live = [path for path in live if path not in change.removed]
        live += [file.path for file in change.added]
    assert [file.path for file in step_by_step.files] == live


@given(CHANGES, st.sets(st.sampled_from(PATHS)))
def test_carried_groups_are_those_of_the_files(toggled: list[set[str]], some: set[str]) -> None:
    carried = LogState()
    for entry in make_commits(toggled):
        assert carried.by_table is not None
        assert carried.by_place is not None
        carried = carried.add(entry)
        fresh = LogState(files=carried.files)
        assert carried.by_table == fresh.by_table
        assert carried.by_place == fresh.by_place
    live = {file.path for file in carried.files}
    assert find_paths(carried.by_place, some) == live & some
    assert all(group for group in carried.by_place.values())


@given(st.sets(st.sampled_from(PATHS)), st.sets(st.sampled_from(PATHS)))
def test_files_are_left_out_wherever_they_stand(there: set[str], gone: set[str]) -> None:
    files = tuple(map(make_file, sorted(there)))
    assert leave_out(files, gone) == tuple(file for file in files if file.path not in gone)


def test_a_commit_changes_its_places_alone() -> None:
    days = [f"2024-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29)]
    paths = [f"{table}/day={day}/1-1-00.parquet" for table in ("blocks", "traces") for day in days]
    before = LogState(files=tuple(map(make_file, paths)))
    assert len(before.by_place) == len(days)
    gone, new = paths[-1], "blocks/day=2024-12-28/2-2-01.parquet"
    commit, digest = make_commits([{gone}, {gone, new}])[1]
    after = before.add((commit, digest))
    changed = {
        place
        for place in before.by_place.keys() | after.by_place.keys()
        if before.by_place.get(place) is not after.by_place.get(place)
    }
    assert changed == {name_place(gone), name_place(new)}


def test_a_lake_is_opened_with_its_newest_checkpoint_and_the_entries_after_it(
    tmp_path: Path,
) -> None:
    with mock.patch("tonlake.lake.commit.commit.CHECKPOINT_COMMITS", 4):
        for at in range(1, 11):
            commit_rows(tmp_path, at, at, rows=1, tables=("blocks",))
    log = LogReader(tmp_path)
    with mock.patch("tonlake.lake.log.state.read_body", wraps=read_body) as read:
        log.read()
        assert _list_read(read) == ["8.checkpoint.json", "9.json", "10.json"]
        commit_rows(tmp_path, 11, 11, rows=1, tables=("blocks",))
        read.reset_mock()
        log.read()
        assert _list_read(read) == ["11.json"]


def _list_read(read: mock.Mock) -> list[str]:
    """Return the files of the log that were read, by name."""
    return [call.args[1].removeprefix("_log/") for call in read.call_args_list]


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
