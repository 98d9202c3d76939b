"""Pages of the richest accounts are their whole list; routes answer, or refuse with a reason."""

import csv
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker


def test_pages_of_top_accounts_are_complete(ask: Asker) -> None:
    whole = ask("topAccountsByBalance", limit=1000)
    found: list[Any] = []
    while page := ask("topAccountsByBalance", limit=17, offset=len(found)):
        found += page
    assert found == whole


NOT_THERE = "unknown path"


def test_all_routes_answer(client: TestClient[Any], shared: Path) -> None:
    with (shared / "reference" / "endpoints.csv").open(encoding="utf-8") as file:
        routes = [(row["method"], row["path"]) for row in csv.DictReader(file)]
    assert len(routes) == 47
    for method, path in routes:
        answer = client.request(method, path, follow_redirects=False)
        assert NOT_THERE not in answer.text, path
        assert answer.status_code not in (405, 500), (path, answer.text)


UNKNOWN = f"0:{'1' * 64}"
REFUSED: dict[str, list[tuple[dict[str, Any], int, str]]] = {
    "blocks": [
        ({"mc_seqno": 999}, 404, "masterchain block 999 not found; this lake covers 1..238"),
        ({"workchain": -1, "seqno": 239}, 404, "block 239 not found; this lake covers 1..238 of"),
        ({"start_lt": 10**15}, 404, "logical time 1000000000000000.. is not indexed"),
        ({"end_utime": 1}, 404, "time ..1 is not indexed; this lake covers 179523"),
        ({"limit": 1001}, 422, "limit is not allowed: 1001 > 1000"),
        ({"sort": "up"}, 422, "wrong value for sort parameter"),
        ({"workchain": "x"}, 422, 'schema: error converting value for "workchain"'),
        ({"shard": "x", "seqno": "y"}, 422, "(and 1 other error)"),
        ({"root_hash": "abc"}, 422, 'schema: error converting value for "root_hash"'),
    ],
    "messages": [
        ({"direction": "up"}, 422, "direction should be one of: in, out"),
        ({"source": "nowhere"}, 422, 'schema: error converting value for "source"'),
        ({"only_externals": "maybe"}, 422, 'schema: error converting value for "only_externals"'),
        ({"msg_hash": "1"}, 422, 'schema: error converting value for index 0 of "msg_hash"'),
        ({"limit": 1001}, 422, "limit is not allowed: 1001 > 1000"),
        ({"sort": "1"}, 422, "wrong value for sort parameter"),
        ({"start_utime": 9999999999}, 404, "time 9999999999.. is not indexed; this lake covers"),
        ({"end_lt": 1}, 404, "logical time ..1 is not indexed; this lake covers"),
    ],
    "transactions": [
        ({"mc_seqno": 0}, 404, "masterchain block 0 not found; this lake covers 1..238"),
        ({"workchain": 0, "seqno": 10**6}, 404, "block 1000000 not found; this lake covers 1.."),
        ({"start_utime": -1}, 404, "775807 (negative numbers wrap around).. is not"),
        ({"end_lt": 5}, 404, "logical time ..5 is not indexed"),
        ({"lt": 10**15}, 404, "logical time 1000000000000000..1000000000000000 is not indexed"),
        ({"account": "x"}, 422, 'schema: error converting value for index 0 of "account"'),
        ({"account": f"{UNKNOWN},x"}, 422, 'index 1 of "account"'),
        ({"hash": "x"}, 422, 'schema: error converting value for index 0 of "hash"'),
        ({"lt": "-1"}, 422, 'schema: error converting value for "lt"'),
        ({"start_utime": ""}, 422, 'schema: error converting value for "start_utime"'),
        ({"limit": 5000}, 422, "limit is not allowed: 5000 > 1000"),
        ({"sort": "x"}, 422, "wrong value for sort parameter"),
    ],
    "accountStates": [
        ({}, 422, "address of account is required"),
        ({"address": ""}, 422, "address of account is required"),
        ({"address": "x"}, 422, 'converting value for index 0 of "address"'),
        ({"address": UNKNOWN, "code_hash": "x"}, 422, 'index 0 of "code_hash"'),
        ({"address": UNKNOWN, "include_boc": "x"}, 422, '"include_boc"'),
    ],
    "walletStates": [({}, 422, "address of account is required")],
    "addressBook": [({}, 422, "at least 1 address required")],
    "addressInformation": [({}, 401, "address of account is required")],
    "account": [
        ({}, 401, "address of account is required"),
        ({"address": UNKNOWN, "use_v2": "x"}, 422, '"use_v2"'),
    ],
    "walletInformation": [({}, 401, "address of account is required")],
    "wallet": [
        ({}, 401, "address of account is required"),
        ({"address": "x"}, 422, 'schema: error converting value for "address"'),
    ],
    "topAccountsByBalance": [({"limit": "x"}, 422, '"limit"')],
}


@pytest.mark.parametrize(
    ("operation", "params", "status", "text"),
    [(operation, *case) for operation, cases in REFUSED.items() for case in cases],
)
def test_errors(ask: Asker, operation: str, params: dict[str, Any], status: int, text: str) -> None:
    answered, message = ask.refused(operation, **params)
    assert answered == status
    assert text in message
