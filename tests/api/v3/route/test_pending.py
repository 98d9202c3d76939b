"""Pending data, and messages submitted without an upstream."""

import base64
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from pytoniq_core import begin_cell

from tests.api.v2.test_send import Upstream, running_upstream
from tests.api.v3.conftest import Asker
from tests.patience import patient
from tonlake.api.app import create_app

ACCOUNT = "0:" + "ab" * 32
HASH = "ab" * 32
BAG = begin_cell().store_uint(7, 64).end_cell().to_boc()


@pytest.mark.parametrize(
    ("operation", "params", "keys"),
    [
        ("pendingTransactions", {"account": ACCOUNT}, {"transactions", "address_book"}),
        ("pendingTransactions", {"trace_id": HASH}, {"transactions", "address_book"}),
        ("pendingTraces", {"account": ACCOUNT}, {"traces", "address_book", "metadata"}),
        ("pendingTraces", {"ext_msg_hash": HASH}, {"traces", "address_book", "metadata"}),
        ("pendingActions", {"account": ACCOUNT}, {"actions", "address_book", "metadata"}),
    ],
)
def test_nothing_is_pending(
    ask: Asker, operation: str, params: dict[str, Any], keys: set[str]
) -> None:
    answer = ask(operation, **params)
    assert set(answer) == keys
    assert not any(answer.values())


def test_somebody_must_be_named(ask: Asker) -> None:
    wanted = "account or ext_msg_hash should be specified"
    assert ask.refused("pendingTraces") == (422, wanted)
    assert ask.refused("pendingActions", include_transactions=1) == (422, wanted)
    assert ask.refused("pendingTransactions") == (422, "at least 1 account address required")


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({}, 401, "boc is required"),
        ({"boc": ""}, 401, "boc is required"),
        ({"boc": "$$"}, 422, "boc is neither base64 nor hex"),
        ({"boc": "AAAA"}, 422, "INVALID_BAG_OF_CELLS"),
        ({"boc": 7}, 422, "failed to parse the request"),
        ({"boc": base64.b64encode(BAG).decode()}, 503, "sending is not available"),
        ({"boc": BAG.hex()}, 503, "sending is not available"),
    ],
)
def test_messages(client: TestClient[Any], body: dict[str, Any], status: int, text: str) -> None:
    answer = client.post("/api/v3/message", json=body)
    assert answer.status_code == status
    assert text in answer.json()["error"]


def test_an_upstream_is_asked(demo_lake: Path) -> None:
    body = {"boc": base64.b64encode(BAG).decode()}
    Upstream.asked.clear()
    with (
        running_upstream() as url,
        TestClient(create_app(demo_lake, patient(upstream={"url": url}))) as client,
    ):
        Upstream.answer = (200, b'{"ok": true, "result": {"hash": "A=", "hash_norm": "B="}}')
        answer = client.post("/api/v3/message", json=body)
        assert answer.json() == {"message_hash": "A=", "message_hash_norm": "B="}
        assert Upstream.asked[0][0] == "/api/v2/sendBocReturnHash"
        Upstream.answer = (406, b'{"ok": false, "error": "too late", "code": 406}')
        answer = client.post("/api/v3/message", json=body)
        assert (answer.status_code, answer.json()) == (406, {"error": "too late"})
