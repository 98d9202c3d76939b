"""Paths of data files round-trip."""

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.log.place import (
    Place,
    find_newest_day,
    is_data_path,
    is_open,
    list_files,
    list_files_at,
    list_files_between,
    list_open_files,
    list_places,
    path_at,
    read_place,
)
from tonlake.lake.log.state import DataFile, LogState

DAYS = st.dates().map(lambda day: day.isoformat())


@given(st.integers(1, 2**40), st.integers(1, 2**40), DAYS)
def test_a_path_names_its_place(first: int, last: int, day: str) -> None:
    for place, span in ((Place(first, last, day), f"{first}-{last}"), (Place(0, 0, day), "open")):
        path = path_at("traces", place, "ab" * 32)
        assert path == f"traces/day={day}/{span}-{'ab' * 8}.parquet"
        held = sys.getrefcount(path)
        assert read_place(path) == place
        assert sys.getrefcount(path) == held  # no cache has it, which would grow with the chain
        assert place.is_open == is_open(path) == (span == "open")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "traces/1-2-ab.parquet",
        "traces/day=2026-1-2/1-2-ab.parquet",
        "traces/day=2026-01-02/0-2-ab.parquet",
        "traces/day=2026-01-02/closed-ab.parquet",
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    assert not is_data_path(path)
    assert not is_data_path("traces/day=2026-01-02/1-2-ab.csv")
    with pytest.raises(ValueError, match="not the place of a data file"):
        read_place(path)


def test_places_of_a_lake_are_sorted_and_each_once() -> None:
    paths = ("b/day=2026-01-02/11-20-ab.parquet", "a/day=2026-01-01/3-10-ab.parquet")
    more = ("a/day=2026-01-02/11-20-cd.parquet", "t/day=2026-01-02/open-cd.parquet")
    files = tuple(DataFile(path, path[0], 1, 1, "", 1) for path in (*paths, *more))
    assert list_places(LogState(files=files)) == [
        Place(3, 10, "2026-01-01"),
        Place(11, 20, "2026-01-02"),
    ]


def make_file(table: str, number: int) -> DataFile:
    path = f"{table}/day=2024-01-01/{number}-{number}-{number:016x}.parquet"
    return DataFile(path, table, rows=1, bytes=1, sha256="", schema_version=1)


def test_files_come_by_table_in_the_order_of_the_state() -> None:
    files = tuple(make_file(table, number) for number in (2, 1, 3) for table in ("a", "b", "c"))
    state = LogState(files=files)
    assert list_files(state, "c", "a") == [
        make_file(table, number) for table in ("c", "a") for number in (2, 1, 3)
    ]
    assert list_files(state, "d") == []


def test_each_state_has_its_own() -> None:
    states = [LogState(files=(make_file("a", number),)) for number in range(1, 6)]
    for _ in range(2):
        for number, state in enumerate(states, 1):
            list_files(state, "a").clear()  # what is listed may be changed
            assert list_files(state, "a") == [make_file("a", number)]
            more = msgspec.structs.replace(state, files=(*state.files, make_file("a", 9)))
            assert list_files(more, "a") == [make_file("a", number), make_file("a", 9)]


RANGES = st.lists(st.integers(1, 9), min_size=1, max_size=12)
TABLES_OF_PLACES = ("blocks", "traces", "actions")


def make_places(lengths: list[int]) -> LogState:
    """Return a state of consecutive places, three a day, and of open files."""
    files = []
    first = 1
    for at, length in enumerate(lengths):
        place = Place(first, first + length - 1, f"2024-01-{1 + at // 3:02}")
        names = TABLES_OF_PLACES[: 1 + at % 3]
        files += [DataFile(path_at(name, place, "ab"), name, 1, 1, "", 1) for name in names]
        first += length + at % 2
    last = Place(0, 0, f"2024-02-{len(lengths):02}")
    files.append(DataFile(path_at("traces", last, "cd"), "traces", 1, 1, "", 1))
    return LogState(files=tuple(files))


@given(RANGES, st.integers(0, 60), st.integers(-1, 20))
def test_files_between_are_those_whose_ranges_overlap(
    lengths: list[int], first: int, more: int
) -> None:
    state = make_places(lengths)
    last = first + more
    expected = [
        file
        for file in state.files
        if (place := read_place(file.path)).first <= last
        and first <= place.last
        and not place.is_open
        and file.table != "actions"
    ]
    found = list_files_between(state, first, last, "blocks", "traces")
    assert sorted(found, key=str) == sorted(expected, key=str)
    starts = [read_place(file.path).first for file in found]
    assert starts == sorted(starts)


@given(RANGES)
def test_files_at_a_place_and_open_ones(lengths: list[int]) -> None:
    state = make_places(lengths)
    for place in {read_place(file.path) for file in state.files}:
        here = [file for file in state.files if read_place(file.path) == place]
        assert list_files_at(state, place, *TABLES_OF_PLACES) == here
        assert list_files_at(state, place, "shard_blocks") == []
    assert list_open_files(state, "traces") == [state.files[-1]]
    assert list_open_files(state, "blocks") == []
    assert find_newest_day(state) == f"2024-02-{len(lengths):02}"
