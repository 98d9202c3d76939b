"""Deriving without the lock: commits in between, and concurrent writers."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from tests.ingest.derive.trace.forest import Forest
from tests.ingest.derive.trace.lakes import commit_forest, expected_rows, long_forest, read_traces
from tonlake.ingest.derive.trace import TraceFiles
from tonlake.lake.commit.commit import ATTEMPTS
from tonlake.lake.commit.rewrite import commit_derived, commit_maintenance
from tonlake.lake.errors import CommitConflict
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.place import Derivation, Place
from tonlake.lake.log.state import LogState, read_state
from tonlake.lake.settings import LakeSettings


class Disturbed(TraceFiles):
    """Derives traces while other commits are made."""

    def __init__(self, lake_dir: Path, times: int) -> None:
        super().__init__(lake_dir)
        self.lake_dir = lake_dir
        self.times = times
        self.states: list[int] = []

    def __call__(
        self, state: LogState, rows: Mapping[str, pa.Table], place: Place, _earlier: object = ()
    ) -> Derivation:
        self.states.append(state.number)
        made = super().__call__(state, rows, place)
        with hold_lock(self.lake_dir / LOCK_FILE, wait=False) as held:
            assert held, "rows are derived under the lock of the log"
            if self.times:
                self.times -= 1
                drop_one_file(self.lake_dir)
        return made


def drop_one_file(lake_dir: Path) -> None:
    """Commit the removal of a file of messages; the caller holds the lock."""
    state = read_state(lake_dir)
    gone = next(file.path for file in state.files if file.table == "messages")
    commit_maintenance(lake_dir, state, removed=[gone])


def make_lake(lake_dir: Path) -> Forest:
    forest = long_forest()
    for mc_seqno in range(1, 6):
        commit_forest(lake_dir, forest, mc_seqno, mc_seqno, TraceFiles(lake_dir))
    return forest


def test_rows_are_derived_again_where_another_commit_came_between(tmp_path: Path) -> None:
    forest = make_lake(tmp_path)
    derive = Disturbed(tmp_path, 2)
    commit = commit_forest(tmp_path, forest, 6, 6, derive)
    assert derive.states == [5, 6, 7]
    assert commit.number == 8
    assert read_traces(tmp_path) == expected_rows(forest)


def test_a_writer_that_is_always_overtaken_gives_up(tmp_path: Path) -> None:
    forest = make_lake(tmp_path)
    with pytest.raises(CommitConflict, match="attempts"):
        commit_forest(tmp_path, forest, 6, 6, Disturbed(tmp_path, ATTEMPTS))
    assert read_state(tmp_path).ranges == ((1, 5),)


def test_a_rebuild_derives_without_the_lock_and_again_after_another_commit(tmp_path: Path) -> None:
    make_lake(tmp_path)
    states = []

    def derive(state: LogState) -> Derivation:
        states.append(state.number)
        with hold_lock(tmp_path / LOCK_FILE, wait=False) as held:
            assert held
            if len(states) == 1:
                drop_one_file(tmp_path)
        return Derivation((), frozenset())

    assert commit_derived(tmp_path, LakeSettings(), derive) is None
    assert states == [5, 6]


def test_writers_side_by_side_give_what_one_after_the_other_gives(tmp_path: Path) -> None:
    forest = long_forest()

    def write(mc_seqno: int) -> None:
        commit_forest(tmp_path, forest, mc_seqno, mc_seqno, TraceFiles(tmp_path))

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, range(1, 7)))
    assert read_traces(tmp_path) == expected_rows(forest)
    assert read_state(tmp_path).ranges == ((1, 6),)
