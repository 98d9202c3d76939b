"""Metadata of tokens, alone and within other responses."""

from typing import Any

import pytest

from tests.api.v3.conftest import Asker
from tests.api.v3.scene import make_raw


@pytest.mark.parametrize(
    ("name", "is_indexed", "info"),
    [
        (
            "gold",
            True,
            {
                "type": "jetton_masters",
                "valid": True,
                "name": "Gold",
                "symbol": "AU",
                "extra": {"decimals": "3"},
            },
        ),
        ("silver", False, {"type": "jetton_masters", "extra": {"uri": "https://s.example"}}),
        ("dross", True, {"type": "jetton_masters", "valid": False}),
        ("birds", True, {"type": "nft_collections", "valid": True, "name": "Birds"}),
        (
            "bird 10",
            True,
            {"type": "nft_items", "valid": True, "name": "A bird", "nft_index": "10"},
        ),
        (
            "lone",
            False,
            {
                "type": "nft_items",
                "valid": True,
                "name": "Lone",
                "nft_index": "0",
                "extra": {"uri": "https://n.example"},
            },
        ),
    ],
)
def test_token(market: Asker, name: str, *, is_indexed: bool, info: dict[str, Any]) -> None:
    found = market("metadata", address=make_raw(name))
    assert found == {make_raw(name): {"is_indexed": is_indexed, "token_info": [info]}}


def test_a_jetton_wallet_brings_its_master(market: Asker) -> None:
    found = market("metadata", address=[make_raw("ann gold"), make_raw("ann"), "rubbish"])
    assert set(found) == {make_raw("ann gold"), make_raw("gold")}
    assert found[make_raw("ann gold")] == {
        "is_indexed": True,
        "token_info": [
            {
                "type": "jetton_wallets",
                "valid": True,
                "extra": {"balance": "0", "owner": make_raw("ann"), "jetton": make_raw("gold")},
            }
        ],
    }


def test_somebody_must_be_named(market: Asker) -> None:
    assert market.refused("metadata") == (422, "at least 1 address required")


def test_states_come_with_methods_and_metadata(market: Asker) -> None:
    answer = market("accountStates", address=[make_raw("gold"), make_raw("ann")])
    states = {row["address"]: row for row in answer["accounts"]}
    assert states[make_raw("gold")]["contract_methods"] == [106029]
    assert states[make_raw("gold")]["interfaces"] == ["jetton_master"]
    assert states[make_raw("ann")]["contract_methods"] == [1, 2]
    assert states[make_raw("ann")]["interfaces"] is None
    assert set(answer["metadata"]) == {make_raw("gold")}


def test_headers_leave_it_out(market: Asker) -> None:
    path = f"/api/v3/jetton/masters?address={make_raw('gold')}"
    answer = market.client.get(path, headers={"X-No-Metadata": "1"}).json()
    assert answer["metadata"] == {}
    assert answer["address_book"]
    answer = market.client.get(path, headers={"X-No-Address-Book": "1"}).json()
    assert answer["metadata"]
    assert answer["address_book"] == {}
