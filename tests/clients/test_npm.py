"""@ton/ton and tonweb, run by node against the served demo lake."""

import base64
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from pytoniq_core import Cell

from tests.api.recorded import list_calls, read_recorded
from tests.api.v3.conftest import to_base64
from tests.conftest import Facts

Run = Callable[[str, dict[str, Any]], Any]


SHOP = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
SEQNOS = [1, 60, 109, 110, 111, 150, 200, 238]
PAGES: list[dict[str, Any]] = [
    {"address": SHOP, "limit": 9},
    {"address": "-1:" + "00" * 32, "limit": 2},
]
TON_WORDS = {"active": "active", "frozen": "frozen"}


def _plan(facts: Facts) -> dict[str, Any]:
    row = facts.history(0, SHOP[2:])[7]
    return {
        "accounts": [account["address"] for account in facts.accounts],
        "pages": PAGES,
        "seqnos": SEQNOS,
        "messages": _messages(facts),
        "single": [{"address": SHOP, "lt": str(row["lt"]), "hash": to_base64(row["hash"])}],
        "params": [0, 1, 15, 34],
        "methods": [method for method, _expected in _methods(facts)] if find_spec("tonpy") else [],
    }


def _methods(facts: Facts) -> list[tuple[dict[str, Any], list[str]]]:
    """Get-methods with recorded answers, written as numbers and hashes of cells."""
    found = []
    for what, (body, answer) in list_calls(facts.summary):
        contract = next(
            c for c in facts.summary["contracts"] if answer in (c.get("get_methods") or {}).values()
        )
        method = {"address": body["address"], "method": body["method"]}
        if "(owner)" in what:
            method["owner"] = contract["owner"]
        if "(index)" in what:
            method["index"] = contract["index"]
        values = read_recorded(answer)
        if "dnsresolve" in what or any(value is None for value in values):
            continue  # called with a slice that is no full address; clients do not tell null apart
        found.append((method, [v[1] if isinstance(v, tuple) else str(v) for v in values]))
    return found


def _messages(facts: Facts) -> list[dict[str, str]]:
    """Messages with both ends in the facts, from the traces of sent messages."""
    found = []
    for activity in facts.summary["activities"]:
        trace = activity.get("trace") or []
        if activity["kind"] == "friend_transfer" and len(trace) == 2:
            source, destination = trace
            found.append(
                {
                    "source": source["account"],
                    "destination": destination["account"],
                    "created_lt": str(source["lt"] + 1),
                    "source_hash": source["hash"],
                    "destination_hash": destination["hash"],
                }
            )
    return found[:12]


@pytest.fixture(scope="module")
def ton(run_node: Run, facts: Facts) -> dict[str, Any]:
    """Results of @ton/ton."""
    found: dict[str, Any] = run_node("tonclient.mjs", _plan(facts))
    return found


@pytest.fixture(scope="module")
def tonweb(run_node: Run, facts: Facts) -> dict[str, Any]:
    """Results of tonweb."""
    found: dict[str, Any] = run_node("tonweb.mjs", _plan(facts))
    return found


def _expected_history(facts: Facts, address: str) -> list[list[str]]:
    workchain, account = address.split(":")
    return [[str(row["lt"]), row["hash"]] for row in facts.history(int(workchain), account)]


def _expected_transactions(facts: Facts, blocks: list[tuple[int, int, int]]) -> list[list[str]]:
    found = []
    for block in blocks:
        rows = [
            row
            for row in facts.transactions
            if (row["workchain"], row["shard"], row["block_seqno"]) == block
        ]
        rows.sort(key=lambda row: (row["account"], row["lt"]))
        found += [
            [f"{r['workchain']}:{r['account']}", str(r["lt"]), to_base64(r["hash"])] for r in rows
        ]
    return found


def test_ton_states(ton: dict[str, Any], facts: Facts) -> None:
    for found, expected in zip(ton["states"], facts.accounts, strict=True):
        assert found["state"] == TON_WORDS.get(expected["status"], "uninitialized")
        assert found["balance"] == str(expected.get("balance", 0))
        assert found["deployed"] is (expected["status"] == "active")
        assert found["seqno"] == 238
        if expected["status"] != "active":
            continue
        assert found["last"]["lt"] == str(expected["last_trans_lt"])
        assert found["last"]["hash"] == to_base64(expected["last_trans_hash"])
        for part in ("code", "data"):
            cell = Cell.one_from_boc(base64.b64decode(found[part]))
            assert cell.hash.hex() == expected[f"{part}_hash"]


def test_ton_pages_through_complete_histories(ton: dict[str, Any], facts: Facts) -> None:
    for page, found in zip(PAGES, ton["histories"], strict=True):
        assert found == _expected_history(facts, page["address"])


def test_ton_blocks(ton: dict[str, Any], facts: Facts) -> None:
    info = ton["info"]
    assert (info["latestSeqno"], info["initSeqno"], info["workchain"]) == (238, 0, -1)
    for seqno, found in zip(SEQNOS, ton["blocks"], strict=True):
        blocks = [(-1, -(1 << 63), seqno)]
        blocks += [
            (shard["workchain"], int(shard["shard"]), shard["seqno"]) for shard in found["shards"]
        ]
        assert len(blocks) == (2 if seqno < 110 else 3)
        assert found["transactions"] == _expected_transactions(facts, blocks)


def test_ton_locates_messages(ton: dict[str, Any], facts: Facts) -> None:
    messages = _messages(facts)
    assert len(messages) > 5
    for message, found in zip(messages, ton["located"], strict=True):
        assert found["source"][1] == message["source_hash"]
        assert found["result"][1] == message["destination_hash"]


def test_ton_finds_one_transaction(ton: dict[str, Any], facts: Facts) -> None:
    assert ton["single"] == [_expected_history(facts, SHOP)[7]]


@pytest.mark.usefixtures("tvm")
def test_ton_get_methods(ton: dict[str, Any], facts: Facts) -> None:
    expected = [answer for _method, answer in _methods(facts)]
    assert len(expected) > 90
    assert ton["methods"] == expected


@pytest.mark.usefixtures("tvm")
def test_tonweb_get_methods(tonweb: dict[str, Any], facts: Facts) -> None:
    assert tonweb["methods"] == [answer for _method, answer in _methods(facts)]


def test_tonweb_states(tonweb: dict[str, Any], facts: Facts) -> None:
    for found, expected in zip(tonweb["states"], facts.accounts, strict=True):
        assert found["balance"] == str(expected.get("balance", 0))
        assert found["info"]["balance"] == found["balance"]
        assert found["extended"]["balance"] == found["balance"]
        assert found["wallet"]["balance"] == found["balance"]
        assert found["wallet"]["account_state"] == found["info"]["state"]


def test_tonweb_pages_through_complete_histories(tonweb: dict[str, Any], facts: Facts) -> None:
    for page, found in zip(PAGES, tonweb["histories"], strict=True):
        expected = _expected_history(facts, page["address"])
        assert found == [[lt, to_base64(tx_hash)] for lt, tx_hash in expected]


def test_tonweb_blocks(tonweb: dict[str, Any], facts: Facts) -> None:
    assert tonweb["info"]["last"]["seqno"] == 238
    headers = {row["seqno"]: row for row in facts.blocks if row["workchain"] == -1}
    for seqno, found in zip(SEQNOS, tonweb["blocks"], strict=True):
        blocks = [
            (shard["workchain"], int(shard["shard"]), shard["seqno"]) for shard in found["shards"]
        ]
        assert found["transactions"] == _expected_transactions(facts, blocks)
        assert found["header"]["id"]["root_hash"] == to_base64(headers[seqno]["root_hash"])
        assert found["header"]["gen_utime"] == headers[seqno]["gen_utime"]


def test_tonweb_configuration_and_errors(tonweb: dict[str, Any]) -> None:
    assert len(set(tonweb["params"])) == 4
    assert tonweb["refusal"].endswith("Failed to parse ton_addr: 'no address'")
