"""Multisig wallets and orders over HTTP."""

import base64
from typing import Any

import pytest
from pytoniq_core import Cell, begin_cell

from tests.api.v3.conftest import Asker
from tests.api.v3.market import ORDER
from tests.api.v3.scene import make_id, make_raw

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


@pytest.mark.parametrize(
    ("params", "domains"),
    [
        ({"wallet": ANN}, ["ann.ton", "longer.ton"]),
        ({"wallet": ANN, "limit": 1, "offset": 1}, ["longer.ton"]),
        ({"wallet": BOB}, ["longest.ton"]),
        ({"wallet": BOB, "mc_seqno": 4}, []),
        ({"domain": "a.ton"}, ["a.ton"]),
        ({"domain": "nobody.ton"}, []),
    ],
)
def test_records_by(market: Asker, params: dict[str, Any], domains: list[str]) -> None:
    answer = market("dns/records", **params)
    assert set(answer) == {"records", "address_book"}
    assert [row["domain"] for row in answer["records"]] == domains


def test_record(market: Asker) -> None:
    (record,) = market("dns/records", domain="ann.ton", mc_seqno=2)["records"]
    assert record == {
        "nft_item_address": make_raw("ann.ton"),
        "nft_item_owner": BOB,
        "domain": "ann.ton",
        "dns_next_resolver": None,
        "dns_wallet": ANN,
        "dns_site_adnl": base64.b64encode(make_id("site")).decode(),
        "dns_storage_bag_id": None,
    }


def test_one_of_wallet_and_domain(market: Asker) -> None:
    assert market.refused("dns/records") == (422, "either wallet address or domain is required")
    both = "provide either wallet address or domain, not both"
    assert market.refused("dns/records", wallet=ANN, domain="a.ton") == (422, both)


def test_the_book_has_the_shortest_name_that_is_owned_and_points_back(market: Asker) -> None:
    book = market("addressBook", address=[ANN, BOB, BOSS])
    names = [book[address]["domain"] for address in (ANN, BOB, BOSS)]
    assert names == ["ann.ton", None, None]


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
