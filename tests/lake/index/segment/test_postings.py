"""Postings of few rows are listed in Python and those of many in Arrow: the same bytes."""

from __future__ import annotations

import io
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.index.segment import postings
from tonlake.lake.index.segment.file import SegmentFile, SegmentWriter
from tonlake.lake.index.segment.postings import Postings, write_postings

MOST_KEY = (1 << 64) - 1
MOST_LT = (1 << 63) - 1
CUT = 1 << 32
"""Keys of hashes of few rows that differ by less are the same."""

keys = st.integers(0, 3).map(lambda key: key * CUT) | st.integers(MOST_KEY - CUT, MOST_KEY)
times = st.integers(-1, 1) | st.just(MOST_LT)
rows = st.lists(st.tuples(keys, times, st.integers(0, 9), st.integers(0, 255)), max_size=40)


@pytest.mark.parametrize("unique", [("row",), ("lt",)])
@given(listed=rows)
def test_both_ways_write_the_same(unique: tuple[str, ...], listed: list[tuple[int, ...]]) -> None:
    with_places = write(listed, "QqIB", ("key", "lt", "row", "place"), unique)
    assert with_places[0] == with_places[1]
    without = write([row[:3] for row in listed], "QqI", ("key", "lt", "row"), unique)
    assert without[0] == without[1]


@given(listed=rows)
def test_each_key_has_its_rows_in_order(listed: list[tuple[int, ...]]) -> None:
    data, _ = write([row[:3] for row in listed], "QqI", ("key", "lt", "row"), ("lt", "row"))
    found = Postings(SegmentFile(data, "test").arrays, "name")
    for key in {0, *(row[0] for row in listed)}:
        expected = sorted({row[1:3] for row in listed if row[0] // CUT == key // CUT})
        assert list(found.rows[slice(*found.find(key))]) == [row for _, row in expected]


@given(listed=rows)
def test_keys_that_differ_stay_apart(listed: list[tuple[int, ...]]) -> None:
    keys = [row[0] & ~1 for row in listed]
    columns = {"key": array("Q", keys), "row": array("I", range(len(keys)))}
    stream = io.BytesIO()
    writer = SegmentWriter(stream)
    write_postings(writer, "name", columns, hashed=True, apart=True)
    writer.finish((1, 1), len(listed))
    found = Postings(SegmentFile(stream.getvalue(), "test").arrays, "name")
    for key in keys:
        same = [row for row, other in enumerate(keys) if other == key]
        assert list(found.rows[slice(*found.find(key))]) == same


def write(
    listed: list[tuple[int, ...]], codes: str, names: tuple[str, ...], unique: tuple[str, ...]
) -> tuple[bytes, bytes]:
    """Return a segment with postings of rows, listed as few and listed as many."""
    values = list(zip(*listed, strict=True)) or [()] * len(names)
    # Places are few, and wider before they are written.
    columns = {
        name: array(code.replace("B", "I"), column)
        for name, code, column in zip(names, codes, values, strict=True)
    }
    written = []
    for few in (1_000, -1):
        stream = io.BytesIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(postings, "_FEW_ROWS", few)
            writer = SegmentWriter(stream)
            write_postings(writer, "name", columns, unique, hashed=True)
            writer.finish((1, 1), len(listed))
        written.append(stream.getvalue())
    return written[0], written[1]
