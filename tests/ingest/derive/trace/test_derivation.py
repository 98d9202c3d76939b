"""Traces in a lake: the same rows for any order and any ranges of its commits."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.derive.trace.forest import Forest, forests
from tests.ingest.derive.trace.lakes import (
    commit_forest,
    expected_rows,
    long_forest,
    read_traces,
    shuffled_ranges,
    states,
    trace_files,
)
from tonlake.ingest.derive.stages import rebuild
from tonlake.ingest.derive.trace import TraceFiles
from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.place import is_open
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings


@pytest.fixture
def forest() -> Forest:
    return long_forest()


@settings(deadline=None, max_examples=10)
@given(forests(), st.data())
def test_ranges_cut_and_shuffled_end_in_the_same_rows(forest: Forest, data: st.DataObject) -> None:
    ranges = data.draw(shuffled_ranges(forest.last))
    with tempfile.TemporaryDirectory() as folder:
        lake_dir = Path(folder)
        for first, last in ranges:
            commit_forest(lake_dir, forest, first, last, TraceFiles(lake_dir))
        assert read_traces(lake_dir) == expected_rows(forest)
        assert verify_lake(lake_dir).damage == []
        # Each file is a function of the base rows and the ranges, so nothing is left to rebuild.
        before = trace_files(lake_dir)
        assert rebuild("traces", lake_dir, IngestSections()) is None
        assert trace_files(lake_dir) == before


def test_a_trace_grows_is_broken_and_heals(forest: Forest, tmp_path: Path) -> None:
    derive = TraceFiles(tmp_path)
    commit_forest(tmp_path, forest, 5, 6, derive)
    assert states(tmp_path) == [("broken", 2), ("complete", 1)]
    commit_forest(tmp_path, forest, 1, 2, derive)
    assert states(tmp_path) == [("pending", 2), ("broken", 2), ("complete", 1)]
    commit_forest(tmp_path, forest, 3, 4, derive)
    assert states(tmp_path) == [("complete", 6), ("complete", 1)]
    assert read_traces(tmp_path) == expected_rows(forest)


@settings(deadline=None, max_examples=10)
@given(forests(), st.data())
def test_open_traces_may_be_cached(forest: Forest, data: st.DataObject) -> None:
    ranges = data.draw(shuffled_ranges(forest.last))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        read, kept = Path(one), Path(other)
        derive = TraceFiles(kept)
        for first, last in ranges:
            commit_forest(read, forest, first, last, TraceFiles(read))
            is_mine = data.draw(st.integers(0, 3)) > 0
            commit = commit_forest(
                kept, forest, first, last, derive if is_mine else TraceFiles(kept)
            )
            if is_mine:
                derive.learn(commit)
        assert trace_files(kept) == trace_files(read)


def test_cached_states_are_not_read(forest: Forest, tmp_path: Path) -> None:
    derive = TraceFiles(tmp_path)
    for first in (1, 3, 5):
        commit = commit_forest(tmp_path, forest, first, first + 1, derive)
        derive.learn(commit)
        for file in commit.added:
            if is_open(file.path):
                (tmp_path / file.path).unlink()
    assert states(tmp_path) == [("complete", 6), ("complete", 1)]


def test_an_earlier_snapshot_keeps_its_traces(forest: Forest, tmp_path: Path) -> None:
    for first in (5, 3, 1):
        commit_forest(tmp_path, forest, first, first + 1, TraceFiles(tmp_path))
    connection = connect(open_snapshot(tmp_path, 1), statement="from traces")
    rows = connection.table("traces").order("end_lt").to_arrow_table().to_pylist()
    assert [(row["state"], row["transactions"]) for row in rows] == [("broken", 2), ("complete", 1)]


def test_files_that_were_replaced_stay_for_the_grace_time(forest: Forest, tmp_path: Path) -> None:
    commit_forest(tmp_path, forest, 1, 3, TraceFiles(tmp_path))
    replaced = {tmp_path / path for path in trace_files(tmp_path) if "open-" in path}
    for path in replaced:
        os.utime(path, (0, 0))
    commit_forest(tmp_path, forest, 4, 6, TraceFiles(tmp_path))
    assert not {tmp_path / path for path in trace_files(tmp_path)} & replaced
    assert sweep_orphans(tmp_path, LakeSettings(orphan_grace_s=60)) == []
    assert set(sweep_orphans(tmp_path, LakeSettings(orphan_grace_s=0))) == replaced


def test_a_commit_at_the_end_rewrites_only_the_open_files(forest: Forest, tmp_path: Path) -> None:
    commit_forest(tmp_path, forest, 1, 3, TraceFiles(tmp_path))
    commit_forest(tmp_path, forest, 4, 6, TraceFiles(tmp_path))
    removed = open_snapshot(tmp_path).commits[-1].removed
    assert sorted(path.split("/")[0] for path in removed) == ["open_edges", "traces"]
    assert all("/open-" in path for path in removed)


def test_unchanged_files_are_not_rewritten(tmp_path: Path) -> None:
    forest = Forest(4)
    forest.add(1, forest.make_arrival("ext"), ["int"])
    forest.add(2, forest.make_arrival("tick"))
    commit_forest(tmp_path, forest, 1, 1, TraceFiles(tmp_path))
    before = trace_files(tmp_path)
    commit_forest(tmp_path, forest, 2, 2, TraceFiles(tmp_path))
    assert before < trace_files(tmp_path)
    assert open_snapshot(tmp_path).commits[-1].removed == ()


def test_damage_of_a_file_that_is_read_stops_the_commit(forest: Forest, tmp_path: Path) -> None:
    commit_forest(tmp_path, forest, 1, 3, TraceFiles(tmp_path))
    path = next((tmp_path / "open_edges").rglob("*.parquet"))
    path.write_bytes(bytes(path.stat().st_size))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(LakeCorrupt, match="open_edges/day="):
        commit_forest(tmp_path, forest, 4, 6, TraceFiles(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_lake_without_traces_must_be_rebuilt_first(forest: Forest, tmp_path: Path) -> None:
    commit_forest(tmp_path, forest, 1, 3, None)
    with pytest.raises(IngestError, match="rebuild traces"):
        commit_forest(tmp_path, forest, 4, 6, TraceFiles(tmp_path))
    made = rebuild("traces", tmp_path, IngestSections())
    assert made is not None
    assert not made.has_blocks
    assert open_snapshot(tmp_path).ranges == ((1, 3),)
    commit_forest(tmp_path, forest, 4, 6, TraceFiles(tmp_path))
    assert read_traces(tmp_path) == expected_rows(forest)
    assert verify_lake(tmp_path).damage == []


def test_rebuilding_mends_damaged_traces(forest: Forest, tmp_path: Path) -> None:
    commit_forest(tmp_path, forest, 1, 6, TraceFiles(tmp_path))
    path = next((tmp_path / "traces").rglob("*.parquet"))
    sound = path.read_bytes()
    path.write_bytes(bytes(len(sound)))
    assert verify_lake(tmp_path).damage
    assert rebuild("traces", tmp_path, IngestSections()) is None
    assert path.read_bytes() == sound
    assert verify_lake(tmp_path).damage == []


def test_a_failed_rebuild_leaves_the_lake_unchanged(forest: Forest, tmp_path: Path) -> None:
    for first in (1, 4):
        commit_forest(tmp_path, forest, first, first + 2, TraceFiles(tmp_path))
    path = next((tmp_path / "messages").rglob("4-6-*.parquet"))
    path.write_bytes(bytes(path.stat().st_size))
    before = trace_files(tmp_path)
    with pytest.raises(LakeCorrupt, match="messages/day="):
        rebuild("traces", tmp_path, IngestSections())
    assert trace_files(tmp_path) == before
    assert all((tmp_path / path).exists() for path in before)


def test_a_message_consumed_in_an_earlier_block_cannot_be_rebuilt(tmp_path: Path) -> None:
    forest = Forest(2)
    sent = forest.add(2, forest.make_arrival("ext"), ["int"])
    forest.add(1, sent[0])
    for mc_seqno in (1, 2):
        commit_forest(tmp_path, forest, mc_seqno, mc_seqno, TraceFiles(tmp_path))
    with pytest.raises(IngestError, match="an earlier one"):
        rebuild("traces", tmp_path, IngestSections())


def test_an_empty_lake_has_nothing_to_rebuild(tmp_path: Path) -> None:
    commit_range(tmp_path, {}, first_mc_seqno=1, last_mc_seqno=2, day="1970-01-01", source={})
    assert rebuild("traces", tmp_path, IngestSections()) is None
