"""Which segments exist: cut behind commits, bounded, and determined by the lake alone."""

from pathlib import Path
from unittest import mock

import pytest

from tests.lake.chain import Chain, commit_chain
from tonlake.lake.index.builder import plan
from tonlake.lake.index.builder.compose import SegmentSource
from tonlake.lake.index.builder.plan import choose_rows, count_rows, list_due, list_within, range_of
from tonlake.lake.index.builder.rebuild import build_segment, rebuild_index
from tonlake.lake.index.index import open_segments
from tonlake.lake.log.ranges import merge_ranges
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.settings import LakeSettings

MOST = 1_000_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of twenty commits of two masterchain blocks, and no index."""
    lake, chain = tmp_path_factory.mktemp("plan") / "lake", Chain(5)
    for at in range(1, 41, 2):
        commit_chain(lake, chain, at, at + 1)
    return lake


def count_transactions(lake: Path, mc_range: tuple[int, int]) -> int:
    return count_rows(list_within(read_state(lake), mc_range))


@pytest.mark.parametrize("fewest", [1, 7, 20, 1000])
def test_due_ranges_are_full_and_follow_each_other(lake: Path, fewest: int) -> None:
    with mock.patch.object(plan, "MIN_ROWS", fewest):
        due = list_due(read_state(lake), {}, MOST, MOST)
        before = 0
        for mc_range, rows in due.items():
            assert mc_range[1] % 2 == 0, "it ends where no commit does"
            assert rows == count_transactions(lake, mc_range) >= choose_rows(before, MOST, MOST)
            before += rows
    assert len(merge_ranges(tuple(due))) == bool(due)
    most = before + choose_rows(before, MOST, MOST) + fewest
    assert before <= count_transactions(lake, (1, 40)) < most


def test_the_same_ranges_are_due_at_once_and_one_by_one(lake: Path) -> None:
    with mock.patch.object(plan, "MIN_ROWS", 7):
        state = read_state(lake)
        at_once = list_due(state, {}, MOST, MOST)
        ahead: dict[tuple[int, int], int] = {}
        while len(ahead) < len(at_once):
            first = dict(list(at_once.items())[: len(ahead)])
            assert first == ahead
            (mc_range, rows), *_ = list_due(state, ahead, MOST, MOST).items()
            ahead[mc_range] = rows
        assert list_due(state, at_once, MOST, MOST) == {}


def test_rows_of_a_segment_grow_with_the_chain_within_their_bounds() -> None:
    easy, done, count = 130_000, 0, 0
    while done < 5_000_000:
        rows = choose_rows(done, MOST, easy)
        assert plan.MIN_ROWS <= rows <= max(easy, done // 32)
        done, count = done + rows, count + 1
    assert count < 60
    assert rows < 170_000
    assert choose_rows(1 << 40, MOST, easy) == MOST
    assert choose_rows(400_000, MOST, easy, earlier=80_000) == 120_000


def test_segments_of_bounded_size_have_every_row(lake: Path) -> None:
    for max_rows in (9, 30):
        commit = rebuild_index(lake, max_rows=max_rows, everything=True)
        assert commit is not None
        assert commit.segments is not None
        ranges = sorted(map(range_of, commit.segments))
        assert merge_ranges(tuple(ranges)) == ((1, 40),)
        assert len(ranges) > 1
        largest = max(count_transactions(lake, (at, at + 1)) for at in range(1, 41, 2))
        assert max(segment.rows for segment in commit.segments) < max_rows + largest
        found = open_segments(open_snapshot(lake), LakeSettings(index_memory_rows=0))
        assert found is not None
        rows = sum(len(each.transactions.lt) for each in found.segments)
        assert rows == count_transactions(lake, (1, 40))


@pytest.mark.parametrize("max_rows", [60, MOST])
def test_neighbours_are_joined_up_to_the_bound_and_seldom(tmp_path: Path, max_rows: int) -> None:
    lake, chain, written = tmp_path / "lake", Chain(5), 0
    for at in range(1, 65):
        before = read_state(lake).segments if at > 1 else ()
        commit_chain(lake, chain, at, at)
        rebuild_index(lake, max_rows=max_rows)
        segments = read_state(lake).segments
        written += sum(each.rows for each in segments if each not in before)
        assert merge_ranges(tuple(map(range_of, segments))) == ((1, at),)
        assert max((each.rows for each in before), default=0) <= max_rows
    rows = count_transactions(lake, (1, 64))
    assert written < 2.9 * rows, "64 equal commits are written twice after the first time"
    assert len(segments) < 2 * 8 + 3 * rows / max_rows


def test_a_gap_is_joined_with_small_neighbours_on_both_sides(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(5)
    commit_chain(lake, chain, 1, 2)
    commit_chain(lake, chain, 60, 61)
    rebuild_index(lake)
    commit_chain(lake, chain, 3, 59)
    rebuild_index(lake)
    assert [range_of(each) for each in read_state(lake).segments] == [(1, 61)]


def test_a_segment_is_the_same_wherever_it_is_built(lake: Path) -> None:
    source = SegmentSource(lake, list_within(read_state(lake), (5, 12)), (5, 12))
    first, second = (build_segment(source) for _ in range(2))
    assert first == second
    assert first.rows == count_transactions(lake, (5, 12))
