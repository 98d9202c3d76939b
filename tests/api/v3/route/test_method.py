"""runGetMethod of version 3, over the demo lake."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from pytoniq_core import Address, begin_cell

from tonlake.ingest.derive.tvm.call import method_id

PATH = "/api/v3/runGetMethod"
SHOP = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
UNUSED = "0:" + "5" * 64

pytestmark = pytest.mark.usefixtures("tvm")


def run(client: TestClient[Any], **body: Any) -> dict[str, Any]:
    answer = client.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found.keys() == {"gas_used", "exit_code", "stack"}
    return found


def test_numbers_and_the_past(client: TestClient[Any]) -> None:
    now = run(client, address=SHOP, method="seqno", stack=[])
    then = run(client, address=SHOP, method="seqno", seqno=120)
    assert now["exit_code"] == then["exit_code"] == 0
    assert int(now["stack"][0]["value"], 16) > int(then["stack"][0]["value"], 16)
    assert now["stack"][0]["type"] == "num"
    assert now["stack"][0]["value"].startswith("0x")


def test_slices_are_taken_and_come_out_as_cells(client: TestClient[Any], demo_facts: Path) -> None:
    summary = json.loads((demo_facts / "expected.json").read_text(encoding="utf-8"))
    wallets = [c for c in summary["contracts"] if c["kind"] == "jetton_wallet"]
    for wallet in wallets[:3]:
        owner = begin_cell().store_address(Address(wallet["owner"])).end_cell()
        entry = {"type": "slice", "value": base64.b64encode(owner.to_boc()).decode()}
        answer = wallet["get_methods"]["get_wallet_address(owner)"]
        found = run(client, address=answer["contract"], method="get_wallet_address", stack=[entry])
        (cell,) = found["stack"]
        expected = begin_cell().store_address(Address(wallet["address"])).end_cell()
        assert cell["type"] == "cell"
        assert base64.b64decode(cell["value"]) == expected.to_boc(hash_crc32=True)


def test_account_without_code(client: TestClient[Any]) -> None:
    stack = [{"type": "tuple", "value": [{"type": "num", "value": "0x5"}]}]
    found = run(client, address=UNUSED, method="seqno", stack=stack)
    assert (found["exit_code"], found["gas_used"]) == (-13, 0)
    assert found["stack"] == [*stack, {"type": "num", "value": hex(method_id("seqno"))}]


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"{", 422, "failed to parse the request"),
        (b"[]", 422, "failed to parse the request"),
        (b'{"address": "%s", "method": 5}' % SHOP.encode(), 422, "failed to parse the request"),
        (b"{}", 401, "address is required"),
        (b'{"address": "%s"}' % SHOP.encode(), 401, "method is required"),
        (b'{"address": "x", "method": "seqno"}', 422, "Failed to parse ton_addr: 'x'"),
        (
            b'{"address": "%s", "method": "seqno", "stack": [{"type": "word", "value": 1}]}'
            % SHOP.encode(),
            500,
            "unsupported stack parameter type: word",
        ),
        (
            b'{"address": "%s", "method": "seqno", "stack": [{"type": "num"}]}' % SHOP.encode(),
            422,
            "'None' is not an integer of the stack",
        ),
        (
            b'{"address": "%s", "method": "seqno", "seqno": 999}' % SHOP.encode(),
            500,
            "LITE_SERVER_NOTREADY: seqno not in db",
        ),
    ],
)
def test_what_is_refused(client: TestClient[Any], body: bytes, status: int, text: str) -> None:
    answer = client.post(PATH, content=body)
    assert answer.status_code == status
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"].startswith(text)


def test_null_is_as_good_as_absent(client: TestClient[Any]) -> None:
    nulls = {"stack": None, "seqno": None}
    assert run(client, address=SHOP, method="seqno", **nulls) == run(
        client, address=SHOP, method="seqno"
    )
    for body, text in (
        ({"address": None, "method": "seqno"}, "address is required"),
        ({"address": SHOP, "method": None}, "method is required"),
    ):
        answer = client.post(PATH, json=body)
        assert (answer.status_code, answer.json()) == (401, {"error": text})
    message = {"address": SHOP, "body": base64.b64encode(begin_cell().end_cell().to_boc()).decode()}
    nulls = dict.fromkeys(("init_code", "init_data", "ignore_chksig"))
    answers = [
        client.post("/api/v3/estimateFee", json=asked) for asked in (message, message | nulls)
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


def test_other_verbs(client: TestClient[Any]) -> None:
    assert client.get(PATH).status_code == 405
