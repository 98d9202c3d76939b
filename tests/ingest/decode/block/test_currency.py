"""Amounts: every length of VarUInteger, and extra currencies as JSON in the order of ids."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.hashmaps import build_hashmap
from tonlake.ingest.decode.block.currency import (
    read_extra_currencies,
    read_grams,
    read_maybe_grams,
    read_var_uint,
    sign_int32,
)
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree


@given(st.integers(0, (1 << 120) - 1), st.integers(0, 9))
def test_grams_come_back(nano: int, behind: int) -> None:
    builder = CellBuilder().store_bit(1).store_coins(nano).store_uint(0, behind)
    value, bits = builder.tree.bits(builder.end())
    assert read_grams(value, bits - 1) == (nano, behind)
    assert read_maybe_grams(value, bits) == (nano, behind)
    assert read_maybe_grams(0, 3) == (None, 2)


@given(st.integers(0, (1 << 16) - 1))
def test_short_integers_come_back(number: int) -> None:
    for length_bits in (3, 2):
        builder = CellBuilder().store_var_uint(number, length_bits)
        assert read_var_uint(*builder.tree.bits(builder.end()), length_bits) == (number, 0)


@pytest.mark.parametrize("left", range(4))
def test_reading_past_the_end_is_a_value_error(left: int) -> None:
    with pytest.raises(ValueError, match="shift"):
        read_grams(0b111, left)


def test_signs() -> None:
    assert [sign_int32(value) for value in (0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)] == [
        0,
        (1 << 31) - 1,
        -(1 << 31),
        -1,
    ]


@given(st.dictionaries(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 248) - 1), min_size=1))
def test_extra_currencies_are_sorted_by_id(amounts: dict[int, int]) -> None:
    tree = CellTree()
    values = {
        key: (lambda to, amount=amount: to.store_var_uint(amount, 5))
        for key, amount in amounts.items()
    }
    text = read_extra_currencies(tree, build_hashmap(tree, values, 32))
    assert text is not None
    assert list(json.loads(text).items()) == [
        (str(key), str(amounts[key])) for key in sorted(amounts)
    ]
    assert " " not in text
