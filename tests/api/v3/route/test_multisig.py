"""Multisig wallets and orders over HTTP."""

import base64
from typing import Any

import pytest
from pytoniq_core import Cell, begin_cell

from tests.api.v3.conftest import Asker
from tests.api.v3.market import ORDER
from tests.api.v3.scene import make_raw

ANN, BOB, BOSS = make_raw("ann"), make_raw("bob"), make_raw("boss")
SAFE, VAULT = make_raw("safe"), make_raw("vault")
ORDERS = [make_raw("order 1"), make_raw("order 0")]


@pytest.mark.parametrize(
    ("params", "wallets"),
    [
        ({"wallet_address": ANN}, [VAULT, SAFE]),
        ({"wallet_address": ANN, "sort": "asc"}, [SAFE, VAULT]),
        ({"wallet_address": BOB}, [VAULT]),
        ({"wallet_address": BOSS}, [VAULT]),
        ({"wallet_address": [BOB, BOSS], "address": SAFE}, []),
        ({"address": [SAFE, VAULT], "limit": 1}, [VAULT]),
        ({"wallet_address": ANN, "mc_seqno": 1}, [SAFE]),
    ],
)
def test_wallets_by(market: Asker, params: dict[str, Any], wallets: list[str]) -> None:
    answer = market("multisig/wallets", **params)
    assert [row["address"] for row in answer["multisigs"]] == wallets


def test_wallet_with_orders(market: Asker) -> None:
    answer = market("multisig/wallets", address=[SAFE, VAULT])
    vault, safe = answer["multisigs"]
    assert [order["address"] for order in safe["orders"]] == ORDERS
    assert vault["orders"] is None
    assert vault["signers"] == [ANN, BOB]
    assert vault["proposers"] == [BOSS]
    assert set(answer["address_book"]) == {SAFE, VAULT, ANN, BOB, BOSS, *ORDERS}
    plain = market("multisig/wallets", address=SAFE, include_orders=False)["multisigs"]
    assert [row["orders"] for row in plain] == [[]]


def test_orders(market: Asker) -> None:
    empty, full = market("multisig/orders", multisig_address=SAFE)["orders"]
    assert full == {
        "address": make_raw("order 0"),
        "multisig_address": SAFE,
        "order_seqno": "0",
        "threshold": 2,
        "sent_for_execution": False,
        "approvals_mask": "1",
        "approvals_num": 1,
        "expiration_date": 2000,
        "order_boc": full["order_boc"],
        "signers": [ANN, BOB],
        "last_transaction_lt": "201",
        "code_hash": full["code_hash"],
        "data_hash": None,
        "actions": None,
    }
    assert [empty[name] for name in ("threshold", "signers", "order_boc")] == [None, None, None]
    (early,) = market("multisig/orders", multisig_address=SAFE, mc_seqno=2)["orders"]
    assert early["address"] == full["address"]


def test_actions_are_read_when_wanted(market: Asker) -> None:
    (order,) = market("multisig/orders", address=make_raw("order 0"), parse_actions=1)["orders"]
    (action,) = order["actions"]
    assert (action["parsed"], action["parsed_body_type"]) == (False, "unknown")
    (bare,) = market("multisig/orders", address=make_raw("order 1"), parse_actions=1)["orders"]
    assert bare["actions"] is None


def test_orders_are_bags_depth_first_without_crc(market: Asker) -> None:
    (order,) = market("multisig/orders", address=make_raw("order 2"))["orders"]
    cell = Cell.one_from_boc(ORDER)
    assert order["order_boc"] == base64.b64encode(cell.to_boc(hash_crc32=False)).decode()
    assert base64.b64decode(order["order_boc"]) != ORDER


def test_the_book_of_orders_has_the_addresses_of_their_actions(market: Asker) -> None:
    params = {"address": make_raw("order 2")}
    plain = {make_raw("order 2"), make_raw("nest"), ANN, BOB}
    assert set(market("multisig/orders", **params)["address_book"]) == plain
    answer = market("multisig/orders", **params, parse_actions=True)
    assert set(answer["address_book"]) == {*plain, make_raw("payee")}
    (order,) = answer["orders"]
    for action, text in zip(order["actions"], ("part 0", "part 1"), strict=True):
        body = begin_cell().store_uint(0, 32).store_snake_string(text).end_cell()
        assert action["body_raw"] == base64.b64encode(body.to_boc(hash_crc32=True)).decode()


def test_somebody_must_be_named(market: Asker) -> None:
    for operation, other in (("wallets", "wallet_address"), ("orders", "multisig_address")):
        text = f"At least one of address or {other} should be specified"
        assert market.refused(f"multisig/{operation}") == (422, text)
