"""Groups of live files carried from commit to commit equal those computed from the files."""

from pathlib import Path
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from tests.lake.rows import commit_rows
from tonlake.lake.log.envelope import read_body
from tonlake.lake.log.groups import find_paths, leave_out, name_place, name_table
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.state import Commit, DataFile, LogState

PATHS = [
    f"{table}/day=2024-01-0{day}/{at}-{at}-{at:02x}.parquet"
    for table in ("blocks", "traces")
    for day in (1, 2, 3)
    for at in (1, 2, 3)
]
CHANGES = st.lists(st.sets(st.sampled_from(PATHS), max_size=6), max_size=8)


def make_file(path: str) -> DataFile:
    return DataFile(path, name_table(path), 1, 1, "00", 1)


def make_commits(toggled: list[set[str]]) -> list[tuple[Commit, str]]:
    """Return commits that remove the live files of some paths, and add the others."""
    live: set[str] = set()
    made = []
    for number, paths in enumerate(toggled, 1):
        commit = Commit(
            number=number,
            first_mc_seqno=number,
            last_mc_seqno=number,
            day="2024-01-01",
            added=tuple(map(make_file, sorted(paths - live))),
            removed=tuple(sorted(paths & live)),
            network=None,
            previous="",
        )
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
    for commit, _ in commits:
        live = [path for path in live if path not in commit.removed]
        live += [file.path for file in commit.added]
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
