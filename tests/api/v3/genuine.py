"""Compares version 3's contracts with get-method results of a node's lite server."""

import base64
from collections.abc import Callable
from typing import Any

from pytoniq_core.boc import Cell

from tests.api.v3.conftest import Asker

Contract = dict[str, Any]
Row = dict[str, Any]
Stack = list[dict[str, Any]]


def compare_contract(ask: Asker, contract: Contract) -> bool:
    """Compare one contract of an ``expected.json``; return False for kinds without a list."""
    if contract["state"]["status"] != "active" or contract["kind"] not in _KINDS:
        return False
    operation, parameter, key, method, compare = _KINDS[contract["kind"]]
    address = to_raw(contract["address"])
    (row,) = ask(operation, **{parameter: address})[key]
    assert row["address"] == address
    state = contract["state"]
    if "data_hash" in row:
        assert base64.b64decode(row["data_hash"]).hex() == state["data_hash"]
        assert base64.b64decode(row["code_hash"]).hex() == state["code_hash"]
        assert row["last_transaction_lt"] == str(state["last_trans_lt"])
    compare(row, contract["get_methods"][method]["stack"])
    if contract["kind"] == "dns_item":
        (record,) = ask("dns/records", domain=contract["domain"])["records"]
        assert record["nft_item_address"] == address
        assert record["nft_item_owner"] == row["owner_address"]
    return True


def to_raw(address: str) -> str:
    """Return a raw address with capital digits."""
    workchain, account = address.split(":")
    return f"{workchain}:{account.upper()}"


def _number(entry: dict[str, Any]) -> int:
    return int(entry["int"])


def _address(entry: dict[str, Any]) -> str | None:
    text = entry["address"]
    return None if text == "addr_none" else to_raw(text)


def _compare_master(row: Row, stack: Stack) -> None:
    assert row["total_supply"] == str(_number(stack[0]))
    assert row["mintable"] == (_number(stack[1]) != 0)
    assert row["admin_address"] == _address(stack[2])
    assert row["jetton_content"]
    code_hash = base64.b64decode(row["jetton_wallet_code_hash"]).hex()
    assert code_hash == stack[4]["cell_hash"]


def _compare_wallet(row: Row, stack: Stack) -> None:
    found = row["balance"], row["owner"], row["jetton"]
    assert found == (str(_number(stack[0])), _address(stack[1]), _address(stack[2]))


def _compare_collection(row: Row, stack: Stack) -> None:
    assert row["next_item_index"] == str(_number(stack[0]))
    assert row["owner_address"] == _address(stack[2])
    assert row["collection_content"]


def _compare_item(row: Row, stack: Stack) -> None:
    assert row["init"] == (_number(stack[0]) != 0)
    assert row["index"] == str(_number(stack[1]))
    assert row["collection_address"] == _address(stack[2])
    assert row["owner_address"] == _address(stack[3])
    assert row["collection"]["address"] == row["collection_address"]


def _compare_sale(row: Row, stack: Stack) -> None:
    details = row["details"]
    assert row["type"] == "getgems_sale"
    assert details["is_complete"] == (_number(stack[1]) != 0)
    assert row["created_at"] == _number(stack[2])
    assert row["marketplace_address"] == _address(stack[3])
    assert row["nft_address"] == row["nft_item"]["address"] == _address(stack[4])
    assert row.get("nft_owner_address") == _address(stack[5])
    assert details["full_price"] == str(_number(stack[6]))


def _list_addresses(entry: Contract) -> list[str]:
    """Return the values of Hashmap 8 MsgAddress, by key; an empty one is null."""
    if "boc" not in entry:
        return []
    root = Cell.one_from_boc(base64.b64decode(entry["boc"]))
    found = root.begin_parse().load_hashmap(8)
    return [
        to_raw(found[key].load_address().to_str(is_user_friendly=False)) for key in sorted(found)
    ]


def _compare_multisig(row: Row, stack: Stack) -> None:
    assert row["next_order_seqno"] == str(_number(stack[0]))
    assert row["threshold"] == _number(stack[1])
    assert row["signers"] == _list_addresses(stack[2])
    # Orders change proposers: those of the deployment need not be those of now.
    assert row["proposers"] == _list_addresses(stack[3])
    seqnos = [int(order["order_seqno"]) for order in row["orders"]]
    assert sorted(seqnos) == list(range(_number(stack[0])))


def _compare_order(row: Row, stack: Stack) -> None:
    assert row["multisig_address"] == _address(stack[0])
    found = row["order_seqno"], row["threshold"], row["sent_for_execution"]
    assert found == (str(_number(stack[1])), _number(stack[2]), _number(stack[3]) != 0)
    assert row["approvals_mask"] == str(_number(stack[5]))
    assert row["approvals_num"] == _number(stack[6])
    assert row["expiration_date"] == _number(stack[7])
    order = Cell.one_from_boc(base64.b64decode(row["order_boc"]))
    assert order.hash.hex() == stack[8]["cell_hash"]


def _compare_vesting(row: Row, stack: Stack) -> None:
    names = ("start_time", "total_duration", "unlock_period", "cliff_duration")
    assert [row[name] for name in names] == [_number(entry) for entry in stack[:4]]
    assert row["total_amount"] == str(_number(stack[4]))
    assert row["sender_address"] == _address(stack[5])
    assert row["owner_address"] == _address(stack[6])
    assert row["whitelist"] == sorted(row["whitelist"])
    if "boc" in stack[7]:
        root = Cell.one_from_boc(base64.b64decode(stack[7]["boc"]))
        keys = (key.to_bytes(33, "big") for key in root.begin_parse().load_hashmap(264))
        assert row["whitelist"] == sorted(
            f"{int.from_bytes(key[:1], 'big', signed=True)}:{key[1:].hex().upper()}" for key in keys
        )


_ITEM = ("nft/items", "address", "nft_items", "get_nft_data", _compare_item)
_COLLECTION = (
    *("nft/collections", "collection_address", "nft_collections", "get_collection_data"),
    _compare_collection,
)
_KINDS: dict[str, tuple[str, str, str, str, Callable[[Row, Stack], None]]] = {
    "jetton_master": (
        *("jetton/masters", "address", "jetton_masters", "get_jetton_data"),
        _compare_master,
    ),
    "jetton_wallet": (
        *("jetton/wallets", "address", "jetton_wallets", "get_wallet_data"),
        _compare_wallet,
    ),
    "nft_collection": _COLLECTION,
    "dns_collection": _COLLECTION,
    "nft_item": _ITEM,
    "sbt_item": _ITEM,
    "dns_item": _ITEM,
    "nft_sale_getgems_v3r3": (
        *("nft/sales", "address", "nft_sales", "get_sale_data"),
        _compare_sale,
    ),
    "multisig_v2": (
        *("multisig/wallets", "address", "multisigs", "get_multisig_data"),
        _compare_multisig,
    ),
    "multisig_order_v2": (
        *("multisig/orders", "address", "orders", "get_order_data"),
        _compare_order,
    ),
    "vesting_wallet": (
        *("vesting", "contract_address", "vesting_contracts", "get_vesting_data"),
        _compare_vesting,
    ),
}
