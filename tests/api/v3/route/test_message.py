"""The operation about messages, compared with the demo node's lite server."""

import base64
from typing import Any

import pytest

from tests.api.v3.conftest import Asker, Facts


@pytest.fixture(scope="module")
def messages(ask: Asker) -> list[dict[str, Any]]:
    """Every message of the demo lake, ascending."""
    found: list[dict[str, Any]] = []
    while page := ask("messages", limit=1000, offset=len(found), sort="asc")["messages"]:
        found += page
    return found


def test_a_message_is_one_row_with_both_ends(messages: list[dict[str, Any]], facts: Facts) -> None:
    made = {text: row["hash"] for row in facts.transactions for text in row["out_msg_hashes"]}
    used: dict[str, str] = {}
    for row in facts.transactions:  # ascending, so the last execution remains
        if row["in_msg_hash"]:
            used[row["in_msg_hash"]] = row["hash"]
    assert sorted(item["hash"] for item in messages) == sorted(made.keys() | used.keys())
    for message in messages:
        assert message.get("out_msg_tx_hash") == made.get(message["hash"])
        assert message.get("in_msg_tx_hash") == used.get(message["hash"])


def test_messages_without_time_come_first_when_descending(
    ask: Asker, messages: list[dict[str, Any]]
) -> None:
    def key(message: dict[str, Any]) -> tuple[bool, int, bytes]:
        missing = message["created_lt"] is None
        lt = 0 if missing else int(message["created_lt"])
        return missing, lt, base64.b64decode(message["hash"])

    assert messages == sorted(messages, key=key)
    newest = ask("messages", limit=1000)["messages"]
    assert newest == messages[::-1][:1000]
    assert newest[0]["created_lt"] is None
    assert newest[0]["source"] is None


def test_what_externals_are(messages: list[dict[str, Any]]) -> None:
    kinds = {
        "in": [item for item in messages if item["source"] is None],
        "out": [item for item in messages if item["destination"] is None],
    }
    assert all(item["import_fee"] is not None for item in kinds["in"])
    assert len(kinds["in"]) >= 300
    assert len(kinds["out"]) == 9
    for item in (*kinds["in"], *kinds["out"]):
        for name in ("value", "fwd_fee", "ihr_fee", "bounce", "value_extra_currencies"):
            assert item[name] is None
    for item in kinds["in"]:
        assert (item["created_lt"], item["created_at"]) == (None, None)
        assert item.get("hash_norm") != item["hash"]
    internal = [item for item in messages if item["value"] is not None]
    assert all(item["value_extra_currencies"] == {} for item in internal)
    assert all("hash_norm" not in item for item in (*internal, *kinds["out"]))


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"source": "null"}, lambda item: item["source"] is None),
        ({"destination": "null"}, lambda item: item["destination"] is None),
        ({"exclude_externals": True}, lambda item: item["created_lt"] is not None),
        ({"only_externals": "on"}, lambda item: item["created_lt"] is None),
        ({"opcode": "0x0f8a7ea5"}, lambda item: item["opcode"] == "0x0f8a7ea5"),
        ({"opcode": "260734629"}, lambda item: item["opcode"] == "0x0f8a7ea5"),
        (
            {"start_lt": 20000000, "end_lt": 40000000},
            lambda item: 20000000 <= int(item["created_lt"] or 0) <= 40000000,
        ),
        (
            {"start_utime": 1795238540, "end_utime": 1795238560},
            lambda item: 1795238540 <= int(item["created_at"] or 0) <= 1795238560,
        ),
    ],
)
@pytest.mark.parametrize("sort", ["asc", "desc"])
def test_filters(
    ask: Asker,
    messages: list[dict[str, Any]],
    params: dict[str, Any],
    match: Any,
    sort: str,
) -> None:
    found = ask("messages", limit=1000, sort=sort, **params)["messages"]
    wanted = [item for item in messages if match(item)]
    if "start_utime" in params:
        assert sorted(map(str, found)) == sorted(map(str, wanted))
    else:
        assert found == (wanted if sort == "asc" else wanted[::-1])[:1000]
    assert found


def test_both_ends_and_the_body(ask: Asker, messages: list[dict[str, Any]]) -> None:
    sample = next(item for item in messages if item["source"] and item["destination"])
    ends = {"source": sample["source"], "destination": sample["destination"]}
    found = ask("messages", limit=1000, sort="asc", **ends)["messages"]
    assert found == [item for item in messages if {name: item[name] for name in ends} == ends]
    body = sample["message_content"]["hash"]
    by_body = ask("messages", body_hash=body, limit=1000, sort="asc")["messages"]
    assert by_body == [item for item in messages if item["message_content"]["hash"] == body]


def test_messages_by_hash_in_every_form(ask: Asker, messages: list[dict[str, Any]]) -> None:
    external = next(item for item in messages if "hash_norm" in item)
    internal = next(item for item in messages if item["value"])
    for name in ("msg_hash", "hash"):
        both = ask("messages", **{name: [external["hash_norm"], internal["hash"]]}, sort="asc")
        assert both["messages"] == [internal, external]
    joined = f"{external['hash']},{internal['hash']}"
    assert len(ask("messages", msg_hash=joined)["messages"]) == 2


def test_one_direction_shows_one_end(ask: Asker, messages: list[dict[str, Any]]) -> None:
    sample = next(item for item in messages if {"in_msg_tx_hash", "out_msg_tx_hash"} <= set(item))
    (consumed,) = ask("messages", msg_hash=sample["hash"], direction="in")["messages"]
    (produced,) = ask("messages", msg_hash=sample["hash"], direction="out")["messages"]
    assert consumed == {k: v for k, v in sample.items() if k != "out_msg_tx_hash"}
    assert produced == {k: v for k, v in sample.items() if k != "in_msg_tx_hash"}


def test_the_answer_has_a_book_and_metadata(ask: Asker) -> None:
    answer = ask("messages", limit=50, exclude_externals=True)
    ends = {item[end] for item in answer["messages"] for end in ("source", "destination")}
    assert set(answer["address_book"]) == ends - {None}
    assert answer["metadata"]
    assert set(answer) == {"messages", "address_book", "metadata"}


@pytest.mark.parametrize(
    ("params", "status", "text"),
    [
        ({"direction": "up"}, 422, "direction should be one of: in, out"),
        ({"source": "nobody"}, 422, 'schema: error converting value for "source"'),
        ({"only_externals": "maybe"}, 422, 'schema: error converting value for "only_externals"'),
        ({"msg_hash": "1"}, 422, 'schema: error converting value for index 0 of "msg_hash"'),
        ({"limit": 1001}, 422, "limit is not allowed: 1001 > 1000"),
        ({"sort": "1"}, 422, "wrong value for sort parameter"),
        ({"start_utime": 9999999999}, 404, "time 9999999999.. is not indexed; this lake covers"),
        ({"end_lt": 1}, 404, "logical time ..1 is not indexed; this lake covers"),
    ],
)
def test_errors(ask: Asker, params: dict[str, Any], status: int, text: str) -> None:
    answered, message = ask.refused("messages", **params)
    assert answered == status
    assert text in message


@pytest.mark.parametrize(
    "text", ["' or 1=1 --", "'; drop view messages; --", "null' --", "\x00", "%", "*", "😀"]
)
def test_no_text_is_taken_for_sql(ask: Asker, text: str) -> None:
    for name in ("source", "destination", "msg_hash", "body_hash", "opcode", "direction"):
        assert ask.refused("messages", **{name: text})[0] == 422
    assert len(ask("messages")["messages"]) == 10
