"""The echo of values, and where the documents are."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.api.v3.conftest import Asker


def test_values_come_back_in_one_form(ask: Asker) -> None:
    hashes = ["ab" * 32, base64.b64encode(bytes(32)).decode()]
    shards = ["8000000000000000", "-4611686018427387904"]
    raw = "0:" + "ab" * 32
    found = ask("__testMethod", my_hash=hashes, my_addr=raw, my_shard=shards)
    assert found == {
        "my_hash": [base64.b64encode(b"\xab" * 32).decode(), hashes[1]],
        "my_addr": ["0:" + "AB" * 32],
        "my_shard": ["8000000000000000", "C000000000000000"],
    }


def test_a_bad_value_is_named(ask: Asker) -> None:
    status, text = ask.refused("__testMethod", my_shard=["1", "x"])
    assert status == 422
    assert text == 'schema: error converting value for index 1 of "my_shard"'


def test_the_way_to_the_documents(ask: Asker) -> None:
    for path, target in (("index.html", "/docs"), ("doc.json", "/openapi.json")):
        answer = ask.client.get(f"/api/v3/{path}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (301, target)
        assert ask.client.get(f"/api/v3/{path}").status_code == 200
