"""Shared parts of the rules for exchanges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.derive.action.scene import Cell
from tonlake.ingest.derive.action.protocol import coffee, dedust
from tonlake.ingest.derive.action.protocol.exchange import Leg, read_asset, show_payouts
from tonlake.ingest.errors import BodyError

TAG_BITS = st.sampled_from([coffee.ASSET_TAG_BITS, dedust.ASSET_TAG_BITS])


def read_back(cell: Cell, tag_bits: int) -> tuple[str | None, int]:
    """Return the asset at the start of a message's body, and the bits after it."""
    body = cell.body()
    return read_asset(body, tag_bits), body.bits_left


@given(TAG_BITS, st.integers(-128, 127), st.integers(0, (1 << 256) - 1), st.integers(0, 64))
def test_a_jetton_reads_back(tag_bits: int, workchain: int, number: int, rest: int) -> None:
    cell = Cell().uint(1, tag_bits).int(workchain, 8).uint(number, 256).uint(0, rest)
    assert read_back(cell, tag_bits) == (f"{workchain}:{number:064X}", rest)


@given(TAG_BITS, st.integers(0, (1 << 32) - 1), st.integers(0, 64))
def test_coins_and_extra_currencies_have_no_master(tag_bits: int, number: int, rest: int) -> None:
    assert read_back(Cell().uint(0, tag_bits).uint(0, rest), tag_bits) == (None, rest)
    extra = Cell().uint(2, tag_bits).uint(number, 32).uint(0, rest)
    assert read_back(extra, tag_bits) == (None, rest)


@pytest.mark.parametrize(("tag_bits", "kind"), [(2, 3), (4, 3), (4, 15)])
def test_another_kind_is_refused_by_its_number(tag_bits: int, kind: int) -> None:
    with pytest.raises(BodyError, match=str(kind)):
        read_back(Cell().uint(kind, tag_bits).uint(0, 264), tag_bits)


def test_payouts_are_numbered_from_one() -> None:
    legs = [Leg(amount, "vault", "from", "owner", "to", None) for amount in (5, 6)]
    columns = show_payouts(legs)
    assert [columns["amount1"], columns["amount2"]] == [5, 6]
    assert columns["user_jetton_wallet_2"] == "to"
    assert columns["dex_jetton_wallet_2"] == "from"
    assert columns["dex_wallet_1"] == "vault"
    assert show_payouts([]) == {}
