"""Vesting wallets over HTTP."""

from typing import Any

import pytest

from tests.api.v3.conftest import Asker
from tests.api.v3.scene import make_raw

PENSION, TRUST = make_raw("pension"), make_raw("trust")


@pytest.mark.parametrize(
    ("params", "wallets"),
    [
        ({"contract_address": [TRUST, PENSION]}, [PENSION, TRUST]),
        ({"wallet_address": make_raw("ann")}, [PENSION]),
        ({"wallet_address": make_raw("boss")}, [PENSION, TRUST]),
        ({"wallet_address": make_raw("boss"), "mc_seqno": 1}, [PENSION]),
        ({"wallet_address": make_raw("shop")}, []),
        ({"wallet_address": make_raw("shop"), "check_whitelist": True}, [PENSION, TRUST]),
    ],
)
def test_vesting_by(market: Asker, params: dict[str, Any], wallets: list[str]) -> None:
    answer = market("vesting", **params)
    assert [row["address"] for row in answer["vesting_contracts"]] == wallets


def test_vesting(market: Asker) -> None:
    answer = market("vesting", contract_address=PENSION)
    assert answer["vesting_contracts"] == [
        {
            "address": PENSION,
            "start_time": 1,
            "total_duration": 20,
            "unlock_period": 5,
            "cliff_duration": 10,
            "sender_address": make_raw("boss"),
            "owner_address": make_raw("ann"),
            "total_amount": str(10**12),
            "whitelist": [make_raw("shop")],
        }
    ]
    names = ("pension", "boss", "ann", "shop")
    assert set(answer["address_book"]) == {make_raw(name) for name in names}


def test_one_kind_of_address(market: Asker) -> None:
    status, text = market.refused("vesting")
    assert (status, text) == (
        422,
        "at least one of contract_address or wallet_address is required",
    )
    status, text = market.refused("vesting", contract_address=TRUST, wallet_address=TRUST)
    assert text == "only one of contract_address or wallet_address should be specified"
    assert status == 422
