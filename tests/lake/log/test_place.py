"""Paths of data files round-trip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.log.place import Place, is_open, list_places, path_at, read_place
from tonlake.lake.log.state import DataFile, LogState

DAYS = st.dates().map(lambda day: day.isoformat())


@given(st.integers(1, 2**40), st.integers(1, 2**40), DAYS)
def test_a_path_names_its_place(first: int, last: int, day: str) -> None:
    place = Place(first, last, day)
    path = path_at("traces", place, "ab" * 32)
    assert path == f"traces/day={day}/{first}-{last}-{'ab' * 8}.parquet"
    assert read_place(path) == place
    assert not place.is_open
    assert not is_open(path)


def test_open_rows_have_a_place_of_their_own() -> None:
    place = Place(0, 0, "2026-01-02")
    path = path_at("open_edges", place, "cd" * 32)
    assert path == f"open_edges/day=2026-01-02/open-{'cd' * 8}.parquet"
    assert read_place(path) == place
    assert place.is_open
    assert is_open(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "traces/1-2-ab.parquet",
        "traces/day=2026-1-2/1-2-ab.parquet",
        "traces/day=2026-01-02/0-2-ab.parquet",
        "traces/day=2026-01-02/closed-ab.parquet",
        "traces/day=2026-01-02/1-2-ab.csv",
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not the path of a data file"):
        read_place(path)


def test_places_of_a_lake_are_sorted_and_each_once() -> None:
    paths = ("b/day=2026-01-02/11-20-ab.parquet", "a/day=2026-01-01/3-10-ab.parquet")
    more = ("a/day=2026-01-02/11-20-cd.parquet", "t/day=2026-01-02/open-cd.parquet")
    files = tuple(DataFile(path, path[0], 1, 1, "", 1) for path in (*paths, *more))
    assert list_places(LogState(files=files)) == [
        Place(3, 10, "2026-01-01"),
        Place(11, 20, "2026-01-02"),
    ]
