"""The extension lists the same postings as plain Python, and finds them again."""

from __future__ import annotations

import io
from array import array
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.index.reference.postings import count_equal_bits, list_postings
from tonlake.lake.index.segment.file import SegmentFile, SegmentWriter, pack_numbers
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.index.segment.postings import Postings, write_postings

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_KEY = (1 << 64) - 1
MAX_LT = (1 << 63) - 1
CUT = 1 << 40
"""Keys of hashes of few rows that differ by less are the same."""

CODES = {"key": "Q", "lt": "q", "hash": "Q", "row": "I", "place": "I"}

keys = st.integers(0, 3).map(lambda key: key * CUT) | st.integers(MAX_KEY - CUT, MAX_KEY)
times = st.integers(-1, 1) | st.just(MAX_LT)
words = st.integers(0, 1) | st.just(MAX_KEY)
rows = st.lists(st.tuples(keys, times, words, st.integers(0, 9), st.integers(0, 255)), max_size=60)
chosen = st.sampled_from(
    [
        (("key", "row"), ("row",)),
        (("key", "lt", "row"), ("row",)),
        (("key", "lt", "row"), ("lt",)),
        (("key", "lt", "hash", "row", "place"), ("lt", "hash")),
    ]
)


@given(listed=rows, names_and_unique=chosen, cut_bits=st.sampled_from([0, 1, 32, 63]))
def test_rows_are_listed_as_in_python(
    listed: list[tuple[int, ...]],
    names_and_unique: tuple[tuple[str, ...], tuple[str, ...]],
    cut_bits: int,
) -> None:
    names, unique = names_and_unique
    columns = pick(listed, names)
    mask = sum(1 << names.index(name) for name in unique)
    kept = [at for at, name in enumerate(names) if cut_bits or name != "key"]
    found = NATIVE.list_postings(tuple(columns.values()), cut_bits, mask, tuple(kept))
    expected = list_postings(columns, unique, cut_bits)
    for at, words in zip(kept, found, strict=True):
        assert [number % (MAX_KEY + 1) for number in words] == [
            row[names[at]] % (MAX_KEY + 1) for row in expected
        ]


@given(listed=rows)
def test_keys_are_grouped_and_cut(listed: list[tuple[int, ...]]) -> None:
    found = sorted(row[0] >> 1 for row in listed)
    each, ends = NATIVE.group_keys(array("q", found))
    groups = [(key, len(list(group))) for key, group in groupby(found)]
    assert list(each) == [key for key, _ in groups]
    assert list(ends) == [sum(size for _, size in groups[: at + 1]) for at in range(len(groups))]
    whole = array("Q", [row[0] for row in listed])
    assert list(NATIVE.cut_keys(whole, 5)) == [key >> 5 for key in whole]
    assert NATIVE.count_equal_bits(whole) == count_equal_bits(whole)


@given(listed=rows)
def test_each_key_has_its_rows_in_order(listed: list[tuple[int, ...]]) -> None:
    columns = pick(listed, ("key", "lt", "row"))
    found = written(columns, unique=("lt", "row"))
    for key in {0, *columns["key"]}:
        same = {row for row in zip(*columns.values(), strict=True) if row[0] // CUT == key // CUT}
        expected = [row for _, row in sorted({row[1:] for row in same})]
        assert list(found.rows[slice(*found.find(key))]) == expected
    spans = found.list_spans()
    assert [at for span in spans for at in range(*span)] == list(range(len(found.rows)))
    for key in columns["key"]:
        start, end = found.find(key)
        assert {start, end} <= {at for span in spans for at in span}


@given(listed=rows)
def test_keys_that_differ_stay_apart(listed: list[tuple[int, ...]]) -> None:
    keys = [row[0] & ~1 for row in listed]
    columns = {"key": array("Q", keys), "row": array("I", range(len(keys)))}
    found = written(columns, apart=True)
    for key in keys:
        same = [row for row, other in enumerate(keys) if other == key]
        assert list(found.rows[slice(*found.find(key))]) == same


@pytest.mark.parametrize("count", [0, 1, 12, 13, 24, 25, 1000])
def test_any_number_of_rows_is_sorted(count: int) -> None:
    columns = {
        "key": array("Q", [(row * 7919) % 13 for row in range(count)]),
        "lt": array("q", [-(row % 5) for row in range(count)]),
        "row": array("I", range(count)),
    }
    found = NATIVE.list_postings(tuple(columns.values()), 0, 4, (0, 2))
    expected = list_postings(columns, ("row",), 0)
    assert list(zip(*found, strict=True)) == list(map(itemgetter("key", "row"), expected))


@pytest.mark.parametrize(
    "columns",
    [
        (),
        (array("q"),),
        (array("Q"), array("d")),
        (array("Q", [1]), array("I")),
        (array("Q"),) * 9,
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: tuple[array[Any], ...]) -> None:
    with pytest.raises(ValueError, match="column"):
        NATIVE.list_postings(columns, 0, 0, ())


@pytest.mark.parametrize(("cut_bits", "kept"), [(64, (0,)), (0, (1,)), (0, (-1,))])
def test_numbers_that_do_not_fit_are_refused(cut_bits: int, kept: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="column"):
        NATIVE.list_postings((array("Q", [1]),), cut_bits, 0, kept)


def pick(listed: Iterable[tuple[int, ...]], names: tuple[str, ...]) -> dict[str, array[int]]:
    """Return columns of rows that have all of ``CODES``."""
    values = list(zip(*listed, strict=True)) or [()] * len(CODES)
    every = zip(CODES.items(), values, strict=True)
    return {name: array(code, column) for (name, code), column in every if name in names}


def written(
    columns: dict[str, array[int]], unique: tuple[str, ...] = ("row",), *, apart: bool = False
) -> Postings:
    """Return postings of hashes as read from a segment."""
    stream = io.BytesIO()
    writer = SegmentWriter(stream)
    write_postings(writer, "name", columns, unique, hashed=True, apart=apart)
    writer.finish((1, 1), len(columns["key"]))
    return Postings(SegmentFile(stream.getvalue(), "test").arrays, "name")


@given(
    times=st.lists(st.integers(0, 9), min_size=1, max_size=40),
    draws=st.lists(st.integers(0, 1 << 20), max_size=60),
    ends=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    span=st.tuples(st.integers(-1, 5), st.integers(3, 10)),
    most=st.integers(0, 70),
    descending=st.booleans(),
)
def test_the_nearest_places_come_first(
    times: list[int],
    draws: list[int],
    ends: tuple[int, int],
    span: tuple[int, int],
    most: int,
    *,
    descending: bool,
) -> None:
    listed = [draw % len(times) for draw in draws]
    rows, packed = (pack_numbers(array("q", numbers)) for numbers in (listed, times))
    start, end = (min(at, len(listed)) for at in sorted(ends))
    found = NATIVE.list_nearest(rows, packed, start, end, *span, most, descending)
    sign = -1 if descending else 1
    within = [at for at in range(start, end) if span[0] <= times[listed[at]] <= span[1]]
    assert found == sorted(within, key=lambda at: (sign * times[listed[at]], at))[:most]


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (0, 3)])
def test_places_outside_of_postings_are_refused(start: int, end: int) -> None:
    rows, times = pack_numbers(array("q", [0, 1])), pack_numbers(array("q", [5, 6]))
    with pytest.raises(ValueError, match="outside of its array"):
        NATIVE.list_nearest(rows, times, start, end, 0, 9, 9, False)  # noqa: FBT003 - positional
