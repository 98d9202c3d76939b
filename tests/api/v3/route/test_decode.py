"""``/decode``: names of opcodes and objects of bodies, by GET and POST."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker
from tests.ingest.derive.body.encode import encode_body
from tests.ingest.derive.body.recordings import read_messages
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.v3.resource.transaction import render_decoded
from tonlake.api.v3.route import decode
from tonlake.api.v3.route.decode import decode_text
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body.codec import Value

PATH = "/api/v3/decode"


def make_body(name: str, **fields: Value) -> bytes:
    tree, cell = encode_body(name, **fields)
    return serialize_boc(tree, [cell], crc32c=True)


EXCESS = make_body("excess", query_id="7")
EXCESS_OBJECT = {"@type": "excess", "query_id": "7"}


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient[Any]]:
    """Ask an API whose lake is empty: nothing here needs one."""
    empty: Path = tmp_path_factory.mktemp("empty-lake")
    with (
        mock.patch.object(decode, "DECODE_LIMIT", 5),
        TestClient(create_app(empty, PATIENT)) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0xd53276db", "excess"),
        ("D53276DB", "excess"),
        ("0x00000000", "text_comment"),
        ("-718113061", "excess"),
        ("3576854235", "excess"),
        ("0xdeadbeef", "unknown"),
    ],
)
def test_opcodes_are_named(asker: TestClient[Any], text: str, name: str) -> None:
    answer = asker.get(PATH, params={"opcodes": text})
    assert answer.status_code == 200
    assert answer.json() == {"opcodes": [name], "bodies": []}
    assert asker.post(PATH, json={"opcodes": [text]}).json() == answer.json()


@pytest.mark.parametrize("text", ["x", "no opcode", "4294967296", "-2147483649"])
def test_text_that_is_no_opcode_is_refused(asker: TestClient[Any], text: str) -> None:
    for answer in (
        asker.get(PATH, params={"opcodes": ["1", text]}),
        asker.post(PATH, json={"opcodes": ["1", text]}),
    ):
        assert answer.status_code == 422
        assert answer.json() == {"error": 'schema: error converting value for "opcodes"'}


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(EXCESS).decode(),
        base64.urlsafe_b64encode(EXCESS).decode().rstrip("="),
        EXCESS.hex(),
        EXCESS.hex().upper(),
        "0x" + EXCESS.hex(),
    ],
)
def test_bodies_are_read_in_any_text_form(asker: TestClient[Any], text: str) -> None:
    expected = {"opcodes": [], "bodies": [EXCESS_OBJECT]}
    assert asker.get(PATH, params={"bodies": text}).json() == expected
    assert asker.post(PATH, json={"bodies": [text]}).json() == expected


def test_order_is_kept_and_errors_stand_in_their_place(asker: TestClient[Any]) -> None:
    comment = make_body("text_comment", text="hi")
    bodies = [
        "junk",
        base64.b64encode(comment).decode(),
        "te6cckEBAQEAAgAAAEysuc0=",
        base64.b64encode(EXCESS).decode(),
        "te6ccgEBAQEABgAACNUydts=",
    ]
    opcodes = ["0xd53276db", "1", "0x0f8a7ea5"]
    answer = asker.post(PATH, json={"opcodes": opcodes, "bodies": bodies}).json()
    assert answer["opcodes"][0::2] == ["excess", "jetton_transfer"]
    first, second, third, fourth, fifth = answer["bodies"]
    assert first["error"].startswith("unknown")
    assert second == {"@type": "text_comment", "text": "hi"}
    assert third == {"@type": "empty_cell"}
    assert fourth == EXCESS_OBJECT
    assert fifth == {"error": "unknown body: no layout of excess fits"}
    params = {"opcodes": opcodes, "bodies": bodies}
    assert asker.get(PATH, params=params).json() == answer


def test_an_unescaped_plus_is_forgiven(asker: TestClient[Any]) -> None:
    text = base64.b64encode(make_body("excess", query_id="14")).decode()
    assert "+" in text
    answer = asker.get(f"{PATH}?bodies={text}").json()
    assert answer["bodies"] == [{"@type": "excess", "query_id": "14"}]


def test_numbers_and_nulls_in_json(asker: TestClient[Any]) -> None:
    assert asker.post(PATH, json={"opcodes": [3576854235], "bodies": None}).json() == {
        "opcodes": ["excess"],
        "bodies": [],
    }
    assert asker.post(PATH, json={}).json() == {"opcodes": [], "bodies": []}
    # Text of digits alone may be hex; a number of JSON is decimal, or no opcode.
    asked = [0x64, "64", -0x2ACD8925]
    named = asker.post(PATH, json={"opcodes": asked}).json()["opcodes"]
    by_hex = asker.get(PATH, params={"opcodes": ["0x64", "0x64"]}).json()["opcodes"]
    assert named == [*by_hex, "excess"]
    assert asker.post(PATH, json={"opcodes": [0x100000064]}).status_code == 422


@pytest.mark.parametrize("name", ["opcodes", "bodies"])
def test_lists_have_a_maximum_length(asker: TestClient[Any], name: str) -> None:
    for answer in (
        asker.post(PATH, json={name: ["1"] * 6}),
        asker.get(PATH, params={name: ["1"] * 6}),
    ):
        assert answer.status_code == 422
        assert answer.json() == {"error": f"{name} list exceeds maximum length of 5"}
    assert asker.post(PATH, json={name: ["1"] * 5}).status_code == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"bodies": 1}', b"\xff", b"[" * 100_000])
def test_a_request_that_is_no_object_is_refused(asker: TestClient[Any], body: bytes) -> None:
    answer = asker.post(PATH, content=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("failed to parse the request")


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.hex()))
def test_any_text_has_an_answer(text: str) -> None:
    answer = decode_text(text)
    assert msgspec.json.decode(msgspec.json.encode(answer)) == answer
    assert {"error", "@type"} & set(answer)


def test_messages_carry_name_and_object_of_their_body(pairs: list[dict[str, Any]]) -> None:
    compared = 0
    for line in pairs:
        recorded = line["v3"]["in_msg"]
        decoded = recorded and recorded["message_content"]["decoded"]
        if not decoded or "@type" not in decoded:
            continue  # older answers have other forms: tests/ingest/derive/body/test_body.py
        ours = render_decoded(base64.b64decode(line["boc"]), "hex").in_msg
        assert ours is not None
        assert ours.message_content is not None
        assert ours.message_content.decoded == decoded
        assert ours.decoded_opcode == recorded["decoded_opcode"]
        compared += 1
    assert compared > 10


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
    documents = {"v3/index.html": "/docs", "v3/doc.json": "/openapi.json"}
    for path, target in (documents | {"v2/openapi.json": "/openapi.json"}).items():
        answer = ask.client.get(f"/api/{path}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (301, target)
        assert ask.client.get(f"/api/{path}").status_code == 200


def test_every_recorded_typed_body_is_decoded_as_recorded(shared: Path) -> None:
    typed = [m for m in read_messages(shared) if m.decoded and "@type" in m.decoded]
    assert len(typed) > 15
    different = [m.hash for m in typed if decode_text(m.body) != as_decode_shows(m.decoded)]
    assert different == []


def as_decode_shows(recorded: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded object as ``/decode`` shows it: text comments as their constructor."""
    if recorded["@type"] == "text_comment":
        return {"@type": "text_comment", "text": recorded["comment"]}
    return recorded
