"""Extra currencies as JSON in the order of ids, and addresses of variable length."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.hashmaps import build_currencies
from tonlake.ingest.decode.block.message import read_address, read_extra_currencies, sign_int32
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree


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
    text = read_extra_currencies(tree, build_currencies(tree, amounts))
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
    start = cell.tree.slice(cell.end())
    found = read_address(start)
    account = number.to_bytes(32, "big") if bits == 256 else None
    assert found == ("var", None if account is None else workchain, account)
    assert start.bits_left == 4


def test_a_variable_address_may_have_a_prefix() -> None:
    cell = CellBuilder().store_uint(0b111, 3).store_uint(4, 5).store_uint(0xA, 4)
    cell.store_uint(256, 9).store_int(0, 32).store_uint(0, 256).store_uint(1, 4)
    assert read_address(cell.tree.slice(cell.end()))[2] == b"\xa0" + bytes(31)
