"""Blocks newer than all segments are composed in memory, each a few times as the lake grows."""

import weakref
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from tests.lake.chain import Chain, commit_chain
from tonlake.lake.file.rows import read_rows, without_collector
from tonlake.lake.index import index as opening
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import open_segments
from tonlake.lake.index.page import Declined
from tonlake.lake.index.segment import rows
from tonlake.lake.index.segment.segment import Segment
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import DataFile
from tonlake.lake.settings import LakeSettings

COMMITS = 17


def test_a_growing_lake_composes_each_commit_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compose = mock.Mock(wraps=opening.compose_segment)
    monkeypatch.setattr(opening, "compose_segment", compose)
    chain = Chain(3, accounts=2)
    for last in range(1, COMMITS + 1):
        commit_chain(tmp_path, chain, last, last)
        found = open_segments(open_snapshot(tmp_path), LakeSettings())
        assert found is not None
        assert list_blocks(found.segments) == list(range(1, last + 1))
        assert len(found.segments) < 16
    ranges = [source.mc_range for (source,), _named in compose.call_args_list]
    composed = sum(last - first + 1 for first, last in ranges)
    assert COMMITS < composed <= 3 * COMMITS  # few blocks of the chain have no transactions


def test_a_growing_lake_reads_each_file_once_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(count_readings(tmp_path / "kept", monkeypatch).values()) == {1}
    monkeypatch.setattr(opening, "_read", opening.KeptRows(0))
    assert max(count_readings(tmp_path / "full", monkeypatch).values()) > 1


def test_a_segment_is_freed_with_its_last_reader(tmp_path: Path) -> None:
    chain, maps = Chain(3, accounts=2), Path("/proc/self/maps")
    commit_chain(tmp_path, chain, 1, 12)
    with mock.patch.multiple(rows, _MIN_BYTES=1_000, _DICTIONARY_SHARE=4):
        rebuild_index(tmp_path)
    commit_chain(tmp_path, chain, 13, 15)
    found = open_segments(open_snapshot(tmp_path), LakeSettings())
    assert found is not None
    assert len(found.segments) == 2
    assert not found.find_messages(bytes(32))
    assert str(tmp_path) in maps.read_text(encoding="utf-8")
    for table in found.tables("transactions"):
        assert [*table.read_copies(range(table.count))]
    held = weakref.WeakSet(found.segments)
    opening._kept.clear()
    with without_collector():
        del found, table
        assert not held
        assert str(tmp_path) not in maps.read_text(encoding="utf-8")


def test_a_rank_that_takes_long_is_left_to_those_that_may_wait(tmp_path: Path) -> None:
    commit_chain(tmp_path, Chain(3, accounts=9), 1, 12)
    found = open_segments(open_snapshot(tmp_path), LakeSettings())
    assert found is not None
    page = found.ranking.page
    with mock.patch.object(opening, "RANKED_AT_ONCE", 3):
        first = page(0, 2, may_wait=False)
        with pytest.raises(Declined):
            page(4, 2, may_wait=False)
        whole = page(0, 6, may_wait=True)
        with found.ranking._lock:
            assert page(4, 2, may_wait=False) == whole[4:]
            with pytest.raises(Declined):
                page(5, 2, may_wait=False)
    assert (len(whole), whole[:2]) == (6, first)


def count_readings(lake: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often each file is read while a lake grows until commits are composed."""
    read: Counter[str] = Counter()

    def count(lake_dir: Path, file: DataFile, columns: Any, *, load: Any) -> pa.Table:
        read[file.path] += 1
        return read_rows(lake_dir, file, columns, load=load)

    monkeypatch.setattr(opening, "read_rows", count)
    chain = Chain(5, accounts=2)
    for last in range(1, COMMITS + 1):
        commit_chain(lake, chain, last, last)
        assert open_segments(open_snapshot(lake), LakeSettings()) is not None
    return read


def list_blocks(segments: Iterable[Segment]) -> list[int]:
    """Return the masterchain blocks of each segment in turn."""
    return [
        at
        for segment in segments
        for at in range(segment.first_mc_seqno, segment.last_mc_seqno + 1)
    ]
