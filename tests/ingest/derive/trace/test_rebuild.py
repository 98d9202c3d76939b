"""Traces made anew from base rows: the same bytes, also where damage or nothing was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ingest.derive.trace.forest import Forest
from tests.ingest.derive.trace.lakes import (
    commit_forest,
    expected_rows,
    long_forest,
    read_traces,
    trace_files,
)
from tonlake.ingest.derive.stages import rebuild
from tonlake.ingest.derive.trace.derivation import TraceFiles
from tonlake.ingest.errors import TraceImpossible, TracesMissing
from tonlake.ingest.settings import IngestSections
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.place import derive_nothing
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.verify import verify_lake

if TYPE_CHECKING:
    from pathlib import Path


def test_a_lake_without_traces_must_be_rebuilt_first(tmp_path: Path) -> None:
    forest = long_forest()
    commit_forest(tmp_path, forest, 1, 3, derive_nothing)
    with pytest.raises(TracesMissing, match="rebuild traces"):
        commit_forest(tmp_path, forest, 4, 6, TraceFiles(tmp_path))
    made = rebuild("traces", tmp_path, IngestSections())
    assert made is not None
    assert not made.has_blocks
    assert open_snapshot(tmp_path).ranges == ((1, 3),)
    commit_forest(tmp_path, forest, 4, 6, TraceFiles(tmp_path))
    assert read_traces(tmp_path) == expected_rows(forest)
    assert verify_lake(tmp_path).damage == []


def test_rebuilding_mends_damaged_traces(tmp_path: Path) -> None:
    forest = long_forest()
    commit_forest(tmp_path, forest, 1, 6, TraceFiles(tmp_path))
    path = next((tmp_path / "traces").rglob("*.parquet"))
    sound = path.read_bytes()
    path.write_bytes(bytes(len(sound)))
    assert verify_lake(tmp_path).damage
    assert rebuild("traces", tmp_path, IngestSections()) is None
    assert path.read_bytes() == sound
    assert verify_lake(tmp_path).damage == []


def test_a_rebuild_that_fails_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    forest = long_forest()
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
    with pytest.raises(TraceImpossible, match="an earlier one"):
        rebuild("traces", tmp_path, IngestSections())


def test_an_empty_lake_has_nothing_to_rebuild(tmp_path: Path) -> None:
    commit_range(tmp_path, {}, first_mc_seqno=1, last_mc_seqno=2, day="1970-01-01", source={})
    assert rebuild("traces", tmp_path, IngestSections()) is None
