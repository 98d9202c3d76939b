"""Instructions that the TVM for Python does not know, and those on tuples of any length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.machine.run import Program
from tonlake.ingest.derive.contract.machine.stack import Account, Builder, Thrown
from tonlake.ingest.derive.contract.stack import Address, Cell

ADDRESS = Address(0, bytes(32))
GAS = 1_000_000
PLAIN_BITS = 267
ACCOUNTS = st.tuples(st.integers(0, 255), st.integers(0, (1 << 256) - 1))


def make_slice(value: int, bits: int, refs: int = 0) -> CellSlice:
    builder = CellBuilder()
    for _ in range(refs):
        builder.store_ref(CellBuilder(builder.tree).end())
    builder.store_uint(value, bits)
    return builder.tree.slice(builder.end())


def run(code: str, *arguments: object, version: int = 12) -> list[object]:
    builder = CellBuilder().store_uint(int(code, 16), len(code) * 4)
    data = CellBuilder()
    account = Account(ADDRESS, Cell(data.tree, data.end()), None, version)
    return Program(Cell(builder.tree, builder.end())).run(account, arguments, GAS, {})


def show(value: object) -> object:
    """Return a slice as its bits and references, so that it can be compared."""
    if isinstance(value, CellSlice):
        return value.peek_uint(value.bits_left), value.bits_left, value.refs_left
    return value


def pack(workchain: int, account: int) -> int:
    return 0b100 << 264 | workchain << 256 | account


@given(ACCOUNTS, st.integers(0, 9), st.integers(0, 2))
def test_standard_addresses_are_loaded(at: tuple[int, int], more: int, refs: int) -> None:
    whole = make_slice(pack(*at) << more, PLAIN_BITS + more, refs)
    address, rest = (pack(*at), PLAIN_BITS, 0), (0, more, refs)
    for code, end in (("FA48", []), ("FA49", [-1]), ("FA50", []), ("FA51", [-1])):
        assert list(map(show, run(code, whole))) == [address, rest, *end]


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        pytest.param(0b101 << 264, 267, id="anycast"),
        pytest.param(0b11 << 265, 267, id="addr_var"),
        pytest.param(0b01 << 265, 267, id="addr_extern"),
        pytest.param(0b100 << 263, 266, id="too short"),
        pytest.param(0, 1, id="one bit"),
    ],
)
def test_other_addresses_are_not_loaded(value: int, bits: int) -> None:
    for code in ("FA48", "FA50"):
        with pytest.raises(Thrown):
            run(code, make_slice(value, bits))
    for code in ("FA49", "FA51"):
        assert list(map(show, run(code, make_slice(value, bits)))) == [(value, bits, 0), 0]


def test_addr_none_is_null_where_it_is_optional() -> None:
    whole = make_slice(0b00101, 5)
    assert list(map(show, run("FA50", whole))) == [None, (0b101, 3, 0)]
    assert list(map(show, run("FA51", whole))) == [None, (0b101, 3, 0), -1]
    assert list(map(show, run("FA49", whole))) == [(0b00101, 5, 0), 0]


@given(ACCOUNTS)
def test_standard_addresses_are_stored(at: tuple[int, int]) -> None:
    address = make_slice(pack(*at), PLAIN_BITS)
    started = Builder(0b1, 1, ())
    stored = ((1 << PLAIN_BITS | pack(*at)), PLAIN_BITS + 1, 0)
    for code in ("FA52", "FA54"):
        assert list(map(show, run(code + "CF50", address, started))) == [stored]
    for code in ("FA53", "FA55"):
        ended = run(code + "01CF50", address, started)  # SWAP, BTOS
        assert list(map(show, ended)) == [0, stored]


def test_null_is_stored_as_addr_none() -> None:
    assert list(map(show, run("FA54CF50", None, Builder(1, 1, ())))) == [(0b100, 3, 0)]


@pytest.mark.parametrize(
    ("value", "bits", "refs"), [(0, 2, 0), (0b101 << 264, 267, 0), (4 << 264, 267, 1)]
)
def test_other_addresses_are_not_stored(value: int, bits: int, refs: int) -> None:
    address = make_slice(value, bits, refs)
    for code in ("FA52", "FA54"):
        with pytest.raises(Thrown):
            run(code, address, Builder(0, 0, ()))
    ended = run("FA5301CF5001", address, Builder(0b11, 2, ()))
    assert list(map(show, ended)) == [(value, bits, refs), (0b11, 2, 0), -1]


@given(st.integers(0, (1 << 200) - 1))
def test_builders_are_opened_and_hashed_as_their_cell(value: int) -> None:
    builder = Builder(value, 200, ())
    (opened,) = run("CF50", builder)
    assert show(opened) == (value, 200, 0)
    ended = CellBuilder().store_uint(value, 200)
    wanted = Cell(ended.tree, ended.end()).hash
    assert run("F916", builder) == [int.from_bytes(wanted)]


@pytest.mark.parametrize("code", ["CF50", "F916", "FA48", "FA49", "FA50", "FA55"])
def test_earlier_versions_do_not_have_them(code: str) -> None:
    with pytest.raises(Thrown, match="invalid opcode"):
        run(code, Builder(0, 0, ()), version=11)


def test_values_are_appended_to_tuples_and_taken_off() -> None:
    assert run("6F8C6F22", (7,), 8) == [7, 8]
    assert run("6F8D016F21", (7, 8)) == [8, 7]
    assert run("6F8B", (7, 8)) == [8]
    assert run("6F88", (7, 8)) == [2]
    assert run("6F81", (7, 8), 1) == [8]
    assert run("6F8A", (7, 8)) == [-1]
    assert run("6F8A", 7) == [0]
