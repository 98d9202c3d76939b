"""Amounts: every length of VarUInteger, and extra currencies as JSON in the order of ids."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.hashmaps import build_hashmap
from tonlake.ingest.decode.block.message import (
    read_address,
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


@pytest.mark.parametrize("workchain", [0, -1, 1 << 20])
@pytest.mark.parametrize("bits", [255, 256, 257, 20, 0])
def test_a_variable_address_of_256_bits_is_that_of_an_account(workchain: int, bits: int) -> None:
    number = (1 << bits) // 3
    cell = CellBuilder().store_uint(0b110, 3).store_uint(bits, 9).store_int(workchain, 32)
    cell.store_uint(number, bits).store_uint(1, 4)
    found = read_address(*cell.tree.bits(cell.end()))
    account = number.to_bytes(32, "big") if bits == 256 else None
    assert found == ("var", None if account is None else workchain, account, 4)


def test_a_variable_address_may_have_a_prefix() -> None:
    cell = CellBuilder().store_uint(0b111, 3).store_uint(4, 5).store_uint(0xA, 4)
    cell.store_uint(256, 9).store_int(0, 32).store_uint(0, 256).store_uint(1, 4)
    assert read_address(*cell.tree.bits(cell.end()))[2] == b"\xa0" + bytes(31)
