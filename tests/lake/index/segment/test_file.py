"""Packed numbers round-trip."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.index.segment.file import open_numbers, pack_numbers
from tonlake.lake.index.segment.native import NATIVE

LEAST, MOST = -(1 << 63), (1 << 63) - 1
pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")

words = st.integers(-3, 300) | st.integers(LEAST, MOST) | st.integers(1 << 55, 1 << 57)
lists = st.lists(words, max_size=200) | st.lists(st.integers(7, 9), max_size=200)
lists |= lists.map(sorted)


def pack(values: list[int], cut_bits: int = 0) -> bytes:
    return pack_numbers(array("q", values), cut_bits, shortest=True)


@given(values=lists, ends=st.tuples(st.integers(-250, 250), st.integers(-250, 250)))
def test_what_is_packed_is_read(values: list[int], ends: tuple[int, int]) -> None:
    found = open_numbers(memoryview(pack(values)))
    assert list(found) == found[:] == values
    assert found[slice(*ends)] == values[slice(*ends)]
    assert found[ends[0] : ends[1] : -2] == values[ends[0] : ends[1] : -2]
    assert [found[-1]] == values[-1:] if values else not len(found)
    places = list(range(len(values)))[slice(*ends)]
    assert found.list_at(places) == values[slice(*ends)]
    with pytest.raises(IndexError):
        found.list_at([*places, len(values)])
    with pytest.raises(TypeError):
        found.list_at(range(1))
    for at in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            found[at]


@given(
    values=lists, ends=st.tuples(st.integers(0, 200), st.integers(0, 200)), low=words, high=words
)
def test_places_of_numbers_are_listed(
    values: list[int], ends: tuple[int, int], low: int, high: int
) -> None:
    numbers, places = open_numbers(memoryview(pack(values))), range(*ends)
    if ends[0] > ends[1] or ends[1] > len(values):
        with pytest.raises(IndexError):
            numbers.list_between(*ends, low, high)
        return
    found = numbers.list_between(*ends, low, high)
    assert found == [at for at in places if low <= values[at] < high]


@given(values=st.lists(st.integers(0, 1 << 62), max_size=90), cut_bits=st.integers(0, 40))
def test_sorted_numbers_are_found(values: list[int], cut_bits: int) -> None:
    cut = sorted(value >> cut_bits for value in values)
    found = open_numbers(memoryview(pack(cut, cut_bits)))
    assert found.cut_bits == cut_bits
    hashes = [value.to_bytes(8, "big") + bytes(24) for value in (*values, 0, MOST)]
    places = [found.find(int.from_bytes(each[:8], "big")) for each in hashes]
    assert found.find_hashes(hashes) == places
    with pytest.raises(TypeError):
        found.find_hashes(["text"])
    for wanted in (*values, 0, MOST):
        at = bisect_left(cut, wanted >> cut_bits)
        known = at < len(cut) and cut[at] == wanted >> cut_bits
        assert found.find(wanted) == (at if known else -1)


@given(gaps=st.lists(st.integers(0, 3) | st.integers(0, 1 << 20), max_size=300))
def test_ascending_numbers_take_few_bits(gaps: list[int]) -> None:
    values = list(accumulate(gaps, initial=-(1 << 40)))
    packed = pack(values)
    assert open_numbers(memoryview(packed))[:] == values
    count, span = len(values), values[-1] - values[0]
    bits = 4 + max(0, math.ceil(math.log2(max(1, span) / count)))
    assert len(packed) <= 32 + 4 + 8 + count * bits / 8
    assert len(packed) <= 32 + math.ceil(count * span.bit_length() / 8)


@pytest.mark.parametrize("values", [list(range(40)), list(range(40))[::-1]])
@pytest.mark.parametrize(
    ("at", "value"), [(8, 255), (16, 60), (16, 65), (17, 64), (15, 1), (18, 2)]
)
def test_damaged_numbers_are_refused(values: list[int], at: int, value: int) -> None:
    data = bytearray(pack(values))
    data[at] = value
    with pytest.raises(ValueError, match="packed numbers"):
        open_numbers(memoryview(data))
    with pytest.raises(ValueError, match="packed numbers"):
        open_numbers(memoryview(data)[:31])
