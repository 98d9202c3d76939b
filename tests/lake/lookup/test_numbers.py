"""Packed numbers: both ways write the same bytes, and read what was written."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.lookup import numbers
from lake.lookup.native import NATIVE
from lake.lookup.numbers import Numbers, pack_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST, MOST = -(1 << 63), (1 << 63) - 1
READERS: list[Callable[[memoryview], Any]] = [Numbers, *([NATIVE.Numbers] if NATIVE else [])]

words = st.integers(-3, 300) | st.integers(LEAST, MOST) | st.integers(1 << 55, 1 << 57)
lists = st.lists(words, max_size=200) | st.lists(st.integers(7, 9), max_size=200)


def pack_in_python(values: list[int], cut_bits: int = 0) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "NATIVE", None)
        return pack_numbers(array("q", values), cut_bits)


@given(lists)
def test_both_ways_pack_the_same(values: list[int]) -> None:
    assert pack_numbers(array("q", values), 5) == pack_in_python(values, 5)


@pytest.mark.parametrize("read", READERS)
@given(values=lists, ends=st.tuples(st.integers(-250, 250), st.integers(-250, 250)))
def test_what_is_packed_is_read(
    read: Callable[[memoryview], Any], values: list[int], ends: tuple[int, int]
) -> None:
    found = read(memoryview(pack_in_python(values)))
    assert list(found) == found[:] == values
    assert found[slice(*ends)] == values[slice(*ends)]
    assert found[ends[0] : ends[1] : -2] == values[ends[0] : ends[1] : -2]
    assert [found[-1]] == values[-1:] if values else not len(found)
    for at in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            found[at]


@pytest.mark.parametrize("read", READERS)
@given(values=st.lists(st.integers(0, 1 << 62), max_size=90), cut_bits=st.integers(0, 40))
def test_sorted_numbers_are_found(
    read: Callable[[memoryview], Any], values: list[int], cut_bits: int
) -> None:
    cut = sorted(value >> cut_bits for value in values)
    found = read(memoryview(pack_in_python(cut, cut_bits)))
    assert found.cut_bits == cut_bits
    for wanted in (*values, 0, MOST):
        at = bisect_left(cut, wanted >> cut_bits)
        known = at < len(cut) and cut[at] == wanted >> cut_bits
        assert found.find(wanted) == (at if known else -1)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(("at", "value"), [(8, 255), (16, 60), (16, 65), (17, 64), (15, 1)])
def test_damaged_numbers_are_refused(
    read: Callable[[memoryview], Any], at: int, value: int
) -> None:
    data = bytearray(pack_in_python(list(range(40))))
    data[at] = value
    with pytest.raises(ValueError, match="packed numbers"):
        read(memoryview(data))
    with pytest.raises(ValueError, match="packed numbers"):
        read(memoryview(data)[:31])
