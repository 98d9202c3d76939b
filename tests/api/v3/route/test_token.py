"""Jettons over HTTP."""

import base64
from typing import Any

import pytest

from tests.api.v3.conftest import Asker
from tests.api.v3.market import NEVER_INDEXED, TEXT_HI
from tests.api.v3.scene import make_id, make_raw
from tonlake.api.text.encoding import parse_address, render_friendly

NAMES = {
    make_raw(name): name
    for name in ("gold", "silver", "dross", "ann gold", "ann silver", "bob gold")
}


def _names(answer: dict[str, Any], kind: str) -> list[str]:
    return [NAMES[row["address"]] for row in answer[kind]]


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({}, ["gold", "silver", "dross"]),
        ({"limit": 1, "offset": 1}, ["silver"]),
        ({"address": make_raw("dross")}, ["dross"]),
        ({"address": [make_raw("silver"), make_raw("gold")]}, ["gold", "silver"]),
        ({"admin_address": make_raw("boss")}, ["silver"]),
        ({"admin_address": make_raw("boss"), "mc_seqno": 3}, ["gold", "silver"]),
        ({"mc_seqno": 1}, ["gold"]),
        ({"address": make_raw("ann gold")}, []),
    ],
)
def test_masters_by(market: Asker, params: dict[str, Any], names: list[str]) -> None:
    assert _names(market("jetton/masters", **params), "jetton_masters") == names


def test_master(market: Asker) -> None:
    answer = market("jetton/masters", address=make_raw("gold"))
    assert answer["jetton_masters"] == [
        {
            "address": make_raw("gold"),
            "total_supply": "7",
            "mintable": False,
            "admin_address": None,
            "jetton_content": {"name": "Gold", "symbol": "AU", "decimals": "3"},
            "jetton_wallet_code_hash": base64.b64encode(make_id("wallet code")).decode(),
            "code_hash": base64.b64encode(make_id("master code")).decode(),
            "data_hash": None,
            "last_transaction_lt": "401",
        }
    ]
    assert answer["address_book"][make_raw("gold")]["interfaces"] == ["jetton_master"]
    before = market("jetton/masters", address=make_raw("gold"), mc_seqno=3)["jetton_masters"][0]
    assert before["total_supply"] == str(10**30)
    assert before["admin_address"] == make_raw("boss")


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({}, ["ann gold", "ann silver", "bob gold"]),
        ({"owner_address": make_raw("ann")}, ["ann gold", "ann silver"]),
        ({"owner_address": make_raw("ann"), "sort": "desc"}, ["ann silver", "ann gold"]),
        ({"owner_address": make_raw("ann"), "sort": "asc"}, ["ann gold", "ann silver"]),
        ({"jetton_address": make_raw("gold")}, ["ann gold", "bob gold"]),
        ({"jetton_address": make_raw("gold"), "sort": "desc"}, ["bob gold", "ann gold"]),
        ({"jetton_address": make_raw("gold"), "exclude_zero_balance": True}, ["bob gold"]),
        ({"exclude_zero_balance": True, "mc_seqno": 2}, ["ann gold", "ann silver"]),
        (
            {
                "owner_address": make_raw("ann"),
                "jetton_address": [make_raw("gold"), make_raw("silver")],
            },
            ["ann gold", "ann silver"],
        ),
        ({"address": make_raw("bob gold"), "owner_address": make_raw("ann")}, []),
    ],
)
def test_wallets_by(market: Asker, params: dict[str, Any], names: list[str]) -> None:
    assert _names(market("jetton/wallets", **params), "jetton_wallets") == names


def test_wallets_of_several_owners_stand_together(market: Asker) -> None:
    owners = [make_raw("ann"), make_raw("bob")]
    rows = market("jetton/wallets", owner_address=owners)["jetton_wallets"]
    assert [row["owner"] for row in rows] == sorted(row["owner"] for row in rows)
    assert len(rows) == 3


def test_wallet(market: Asker) -> None:
    answer = market("jetton/wallets", address=make_raw("bob gold"))
    assert answer["jetton_wallets"] == [
        {
            "address": make_raw("bob gold"),
            "balance": "60",
            "owner": make_raw("bob"),
            "jetton": make_raw("gold"),
            "last_transaction_lt": "301",
            "code_hash": base64.b64encode(make_id("wallet code")).decode(),
            "data_hash": None,
        }
    ]
    assert set(answer["address_book"]) == {make_raw(name) for name in ("bob gold", "bob", "gold")}
    assert set(answer["metadata"]) == {make_raw("bob gold"), make_raw("gold")}


def test_several_jettons_need_one_owner(market: Asker) -> None:
    jettons = [make_raw("gold"), make_raw("silver")]
    status, text = market.refused("jetton/wallets", jetton_address=jettons)
    assert (status, text) == (
        422,
        "exact one owner_address required for multiple jetton_address",
    )


@pytest.mark.parametrize(
    ("params", "lts"),
    [
        ({}, ["310", "210"]),
        ({"sort": "asc"}, ["210", "310"]),
        ({"owner_address": make_raw("ann")}, ["310", "210"]),
        ({"address": make_raw("ann"), "direction": "in"}, ["310"]),
        ({"owner_address": make_raw("ann"), "direction": "out"}, ["210"]),
        ({"jetton_wallet": make_raw("bob gold")}, ["310"]),
        ({"jetton_master": make_raw("silver")}, []),
        ({"start_lt": 300}, ["310"]),
        ({"end_utime": 1002}, ["210"]),
        ({"limit": 1, "offset": 1}, ["210"]),
    ],
)
def test_transfers_by(market: Asker, params: dict[str, Any], lts: list[str]) -> None:
    rows = market("jetton/transfers", **params)["jetton_transfers"]
    assert [row["transaction_lt"] for row in rows] == lts


def test_transfer(market: Asker) -> None:
    answer = market("jetton/transfers", end_lt=210)
    text = {"type": "text_comment", "@type": "text_comment", "comment": "hi"}
    (row,) = answer["jetton_transfers"]
    payload = row.pop("forward_payload")
    assert TEXT_HI.hex()[24:] in base64.b64decode(payload).hex()
    assert row == {
        "query_id": str(NEVER_INDEXED),
        "source": make_raw("ann"),
        "destination": make_raw("bob"),
        "amount": str(10**20),
        "source_wallet": make_raw("ann gold"),
        "jetton_master": make_raw("gold"),
        "transaction_hash": base64.b64encode(make_id("transfer 210")).decode(),
        "transaction_lt": "210",
        "transaction_now": 1002,
        "transaction_aborted": False,
        "response_destination": None,
        "custom_payload": None,
        "decoded_custom_payload": None,
        "forward_ton_amount": "1",
        "decoded_forward_payload": text,
        "trace_id": base64.b64encode(make_id("trace 210")).decode(),
    }


def test_burns(market: Asker) -> None:
    rows = market("jetton/burns", owner_address=make_raw("ann"))["jetton_burns"]
    assert [row["transaction_lt"] for row in rows] == ["420", "220"]
    assert [row["transaction_aborted"] for row in rows] == [True, False]
    assert rows[0]["decoded_custom_payload"]["comment"] == "hi"
    assert rows[0]["owner"] == make_raw("ann")
    assert rows[0]["jetton_wallet"] == make_raw("ann gold")
    assert rows[0]["trace_id"] is None
    assert market("jetton/burns", jetton_master=make_raw("silver"))["jetton_burns"] == []


def test_blocks_that_are_not_covered_are_refused(market: Asker) -> None:
    for operation in ("jetton/masters", "jetton/wallets", "nft/items", "nft/collections"):
        status, text = market.refused(operation, mc_seqno=7)
        assert status == 404
        assert "masterchain block 7 not found" in text
    status, text = market.refused("jetton/transfers", start_utime=5000)
    assert status == 404
    assert "not indexed" in text


ITEMS = {make_raw(name): name for name in ("bird 9", "bird 10", "lone")}
BIRDS, ANN, BOB = make_raw("birds"), make_raw("ann"), make_raw("bob")


def _b64(name: str) -> str:
    return base64.b64encode(make_id(name)).decode()


COLLECTION = {
    "address": BIRDS,
    "owner_address": make_raw("boss"),
    "last_transaction_lt": "101",
    "next_item_index": "11",
    "collection_content": {"name": "Birds"},
    "data_hash": None,
    "code_hash": _b64("collection code"),
}


def test_collections(market: Asker) -> None:
    for params in ({}, {"collection_address": BIRDS}, {"owner_address": make_raw("boss")}):
        assert market("nft/collections", **params)["nft_collections"] == [COLLECTION]
    assert market("nft/collections", owner_address=ANN)["nft_collections"] == []


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({}, ["lone"]),
        ({"collection_address": BIRDS}, ["bird 9", "bird 10"]),
        ({"collection_address": BIRDS, "index": "10"}, ["bird 10"]),
        ({"collection_address": BIRDS, "index": ["10", "009"]}, ["bird 9", "bird 10"]),
        ({"collection_address": BIRDS, "index": ["1" * 5000, "0"]}, []),
        ({"collection_address": BIRDS, "limit": 1, "offset": 1}, ["bird 10"]),
        ({"owner_address": ANN}, []),
        ({"owner_address": ANN, "mc_seqno": 3}, ["bird 9", "bird 10"]),
        ({"owner_address": ANN, "include_on_sale": True}, ["bird 10"]),
        ({"owner_address": ANN, "include_on_sale": True, "mc_seqno": 4}, ["bird 9", "bird 10"]),
        ({"owner_address": BOB}, ["lone", "bird 9"]),
        ({"owner_address": BOB, "sort_by_last_transaction_lt": True}, ["bird 9", "lone"]),
        ({"address": make_raw("lone")}, ["lone"]),
    ],
)
def test_items_by(market: Asker, params: dict[str, Any], names: list[str]) -> None:
    rows = market("nft/items", **params)["nft_items"]
    found = [ITEMS[row["address"]] for row in rows]
    if not params:
        assert sorted(found[:2]) == ["bird 10", "bird 9"]
        found = found[2:]
    if params == {"owner_address": BOB}:
        assert [row["collection_address"] for row in rows] == [BIRDS, None]
        found.reverse()
    assert found == names


def test_item_on_sale(market: Asker) -> None:
    (item,) = market("nft/items", address=make_raw("bird 9"), mc_seqno=4)["nft_items"]
    assert item == {
        "address": make_raw("bird 9"),
        "init": True,
        "index": "9",
        "collection_address": BIRDS,
        "owner_address": make_raw("shop"),
        "content": {"name": "A bird"},
        "last_transaction_lt": "401",
        "code_hash": _b64("item code"),
        "data_hash": None,
        "collection": COLLECTION,
        "on_sale": True,
        "sale_contract_address": make_raw("shop"),
        "real_owner": ANN,
    }
    (sold,) = market("nft/items", address=make_raw("bird 9"))["nft_items"]
    assert (sold["on_sale"], sold["owner_address"], sold["real_owner"]) == (False, BOB, BOB)
    (auctioned,) = market("nft/items", address=make_raw("bird 10"))["nft_items"]
    assert auctioned["auction_contract_address"] == make_raw("hall")
    assert "sale_contract_address" not in auctioned
    (lone,) = market("nft/items", address=make_raw("lone"))["nft_items"]
    assert lone["collection"] is None


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"index": "1"}, "index parameter is not allowed without the collection_address"),
        ({"index": "x", "collection_address": BIRDS}, "index should contain digits only"),
        (
            {"collection_address": [BIRDS, ANN]},
            "exact one owner_address required for multiple collection_address",
        ),
    ],
)
def test_items_refused(market: Asker, params: dict[str, Any], text: str) -> None:
    assert market.refused("nft/items", **params) == (422, text)


@pytest.mark.parametrize(
    ("params", "lts"),
    [
        ({}, ["505", "405", "306"]),
        ({"sort": "asc"}, ["306", "405", "505"]),
        ({"owner_address": BOB}, ["505", "306"]),
        ({"address": ANN, "direction": "out"}, ["405", "306"]),
        ({"owner_address": ANN, "direction": "in"}, []),
        ({"item_address": make_raw("lone")}, ["306"]),
        ({"collection_address": BIRDS, "start_lt": 500}, ["505"]),
        ({"start_utime": 1004, "end_utime": 1004}, ["405"]),
    ],
)
def test_item_transfers_by(market: Asker, params: dict[str, Any], lts: list[str]) -> None:
    rows = market("nft/transfers", **params)["nft_transfers"]
    assert [row["transaction_lt"] for row in rows] == lts


def test_item_transfer(market: Asker) -> None:
    answer = market("nft/transfers", item_address=make_raw("lone"))
    assert answer["nft_transfers"] == [
        {
            "query_id": "306",
            "nft_address": make_raw("lone"),
            "nft_collection": "",
            "transaction_hash": _b64("nft 306"),
            "transaction_lt": "306",
            "transaction_now": 1003,
            "transaction_aborted": False,
            "old_owner": ANN,
            "new_owner": BOB,
            "response_destination": None,
            "custom_payload": None,
            "decoded_custom_payload": None,
            "forward_amount": "2",
            "forward_payload": None,
            "decoded_forward_payload": None,
            "trace_id": None,
        }
    ]
    assert set(answer["address_book"]) == {make_raw("lone"), ANN, BOB}
    assert set(answer["metadata"]) == {make_raw("lone")}


def test_sales(market: Asker) -> None:
    answer = market("nft/sales", address=[make_raw("shop"), make_raw("hall"), ANN])
    sales = {sale["address"]: sale for sale in answer["nft_sales"]}
    assert set(sales) == {make_raw("shop"), make_raw("hall")}
    sale = sales[make_raw("shop")]
    assert sale.pop("nft_item")["owner_address"] == BOB
    assert sale == {
        "type": "getgems_sale",
        "address": make_raw("shop"),
        "details": {"full_price": "5", "royalty_address": make_raw("artist")},
        "nft_address": make_raw("bird 9"),
        "nft_owner_address": ANN,
        "marketplace_address": make_raw("boss"),
        "created_at": 77,
        "last_transaction_lt": "401",
        "code_hash": _b64("plain code"),
    }
    assert sales[make_raw("hall")]["type"] == "getgems_auction"


def test_the_book_of_sales_has_every_address_in_them(market: Asker) -> None:
    answer = market("nft/sales", address=make_raw("shop"))
    (sale,) = answer["nft_sales"]
    assert sale["details"]["royalty_address"] == make_raw("artist")
    names = ("shop", "bird 9", "ann", "boss", "bob", "birds", "artist")
    assert set(answer["address_book"]) == {make_raw(name) for name in names}


def test_sales_refused(market: Asker) -> None:
    assert market.refused("nft/sales") == (422, "at least 1 address required")
    short = render_friendly(parse_address(ANN), bounceable=True, test_only=False)
    many = ",".join([short] * 1001)
    assert market.refused("nft/sales", address=many) == (422, "maximum 1000 addresses allowed")
