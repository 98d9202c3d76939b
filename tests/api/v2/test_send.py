"""Sent messages are checked first, then refused, or passed to an upstream."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.v2.conftest import FALSE_PROOF, Asker
from tests.ingest.source.liteserver.server import SimulatedServer, make_chain
from tests.ingest.source.liteserver.test_source import write_config
from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.ingest.blocks import ZeroState
from tonlake.ingest.derive.tvm.trace import build_external_message, read_message

EMPTY = "te6cckEBAQEAAgAAAEysuc0="
SHOP = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
CELL = {"data": {"b64": "AAA=", "len": 12}, "refs": [{"data": {"b64": "", "len": 0}, "refs": []}]}
BAG = {"boc": EMPTY}
PARTS = {"address": SHOP, "body": EMPTY, "init_code": "", "init_data": ""}
REQUESTS: dict[str, dict[str, Any]] = {
    "sendBoc": BAG,
    "sendBocReturnHash": BAG,
    "sendBocReturnHashNoError": BAG,
    "sendBocUnsafe": BAG,
    "sendQuery": PARTS,
    "sendQuerySimple": {"address": SHOP, "body": CELL},
    "sendCellSimple": {"cell": CELL},
}
NO_NETWORK = "sending is not available: this server has no network connection"


def refuse(ask: Asker, method: str, body: dict[str, Any]) -> tuple[int, str]:
    answers = [ask.client.post(f"/api/v2/{method}", json=body), ask.rpc(method, body)]
    for answer in answers:
        assert answer.json()["ok"] is False
        assert answer.json()["code"] == answer.status_code
    assert answers[0].json()["error"] == answers[1].json()["error"]
    return answers[0].status_code, answers[0].json()["error"]


@pytest.mark.parametrize("method", REQUESTS)
def test_without_an_upstream(ask: Asker, method: str) -> None:
    assert refuse(ask, method, REQUESTS[method]) == (503, NO_NETWORK)


@pytest.mark.parametrize("method", ["sendBoc", "sendBocReturnHash", "sendBocUnsafe"])
@pytest.mark.parametrize(
    ("boc", "status", "text"),
    [
        ("", 422, "failed to validate request: empty boc"),
        ("!", 422, "failed to parse post request: the text is not base64"),
        ("aaaa", 500, "INVALID_BAG_OF_CELLS: body"),
        (FALSE_PROOF, 500, "INVALID_BAG_OF_CELLS: body"),
    ],
)
def test_what_is_refused(ask: Asker, method: str, boc: str, status: int, text: str) -> None:
    assert refuse(ask, method, {"boc": boc}) == (status, text)


def test_objects_that_are_no_cells(ask: Asker) -> None:
    for cell in ("x", {}, {"data": {"b64": "AA==", "len": 1024}, "refs": []}, {**CELL, "refs": 1}):
        status, text = refuse(ask, "sendCellSimple", {"cell": cell})
        assert status == 422
        assert "the object is not a cell" in text


class Upstream(BaseHTTPRequestHandler):
    """Sends the configured responses, and records the requests."""

    asked: list[tuple[str, str | None, Any]] = []  # noqa: RUF012 - shared by the requests
    answer: tuple[int | None, bytes] = (200, b"")
    """Status and body; all bytes of the answer where the status is None."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        self.asked.append((self.path, self.headers["X-API-Key"], body))
        status, answer = Upstream.answer
        if status is not None:
            self.send_response(status)
            self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as inherited
        """Say nothing."""


@contextmanager
def running_upstream() -> Iterator[str]:
    """Run an upstream while the block runs; yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api/v2"
        server.shutdown()


@pytest.fixture(scope="module")
def relaying(demo_lake: Path, asker: type[Asker]) -> Iterator[Asker]:
    """Ask a service that has an upstream, one for all tests."""
    with running_upstream() as url:
        limits = patient(upstream={"url": f"{url}/", "key": "secret"})
        with TestClient(create_app(demo_lake, limits)) as client:
            yield asker(client)


@pytest.fixture
def relay(relaying: Asker) -> Asker:
    """Ask that service, whose upstream was asked nothing yet."""
    Upstream.asked.clear()
    return relaying


@pytest.mark.parametrize("method", REQUESTS)
def test_an_upstream_is_asked_and_its_result_given(relay: Asker, method: str) -> None:
    Upstream.answer = (200, b'{"ok": true, "result": {"@type": "ok", "more": [1]}}')
    assert relay.post(method, **REQUESTS[method]) == {"@type": "ok", "more": [1]}
    path, key, _body = Upstream.asked[-1]
    names = {"sendQuerySimple": "sendQuery", "sendCellSimple": "sendBoc"}
    assert (path, key) == (f"/api/v2/{names.get(method, method)}", "secret")


def test_the_refusal_of_an_upstream_is_passed_on(relay: Asker) -> None:
    text = "LITE_SERVER_UNKNOWN: cannot apply external message to current state : no"
    Upstream.answer = (500, json.dumps({"ok": False, "error": text, "code": 500}).encode())
    assert refuse(relay, "sendBoc", {"boc": EMPTY}) == (500, text)
    Upstream.answer = (429, b'{"ok": false, "error": "Ratelimit exceeded", "code": 429}')
    assert refuse(relay, "sendBoc", {"boc": EMPTY}) == (429, "Ratelimit exceeded")


@pytest.mark.parametrize(
    ("status", "said", "code", "text"),
    [
        (429, {"result": "Ratelimit exceed", "code": 429}, 429, "Ratelimit exceed"),
        (200, {"error": "seqno is old", "code": 500}, 500, "seqno is old"),
        (302, {"error": "seqno is old", "code": "x"}, 500, "seqno is old"),
        (999, {"error": None}, 500, "the upstream refuses with 500 and no message"),
        (500, {"error": {"reason": 1}}, 500, "the upstream refuses with 500 and no message"),
    ],
)
def test_a_refusal_is_one_in_whatever_form(
    relay: Asker, status: int, said: dict[str, Any], code: int, text: str
) -> None:
    Upstream.answer = (status, json.dumps({"ok": False, **said}).encode())
    assert refuse(relay, "sendBoc", {"boc": EMPTY}) == (code, text)
    answer = relay.client.post("/api/v3/message", json={"boc": EMPTY})
    assert (answer.status_code, answer.json()) == (code, {"error": text})


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\n\r\n" + b'{"ok": true}',
        b"no HTTP\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" + b'{"ok": true',
        b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" + b'{"ok": true',
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
    ids=["page", "no result", "no HTTP", "nothing", "cut", "cut refusal", "long header"],
)
def test_what_is_no_answer_may_be_tried_again(relay: Asker, said: bytes) -> None:
    Upstream.answer = (None, said)
    for method in ("sendBoc", "sendBocReturnHash"):
        status, text = refuse(relay, method, {"boc": EMPTY})
        assert status == 503
        assert "the upstream" in text
    answer = relay.client.post("/api/v3/message", json={"boc": EMPTY})
    assert answer.status_code == 503, answer.text


def test_hashes_that_are_none(relay: Asker) -> None:
    for result in (b'"x"', b"[1]", b'{"hash": 5}'):
        Upstream.answer = (200, b'{"ok": true, "result": %s}' % result)
        answer = relay.client.post("/api/v3/message", json={"boc": EMPTY})
        assert answer.status_code == 503
        assert "returned no hashes" in answer.json()["error"]


def test_what_is_no_message_does_not_leave_the_house(relay: Asker) -> None:
    assert refuse(relay, "sendBoc", {"boc": "aaaa"})[0] == 500
    assert Upstream.asked == []


def test_an_upstream_that_is_gone(demo_lake: Path, asker: type[Asker]) -> None:
    limits = patient(upstream={"url": "http://127.0.0.1:9/api/v2"})
    with TestClient(create_app(demo_lake, limits)) as client:
        status, text = refuse(asker(client), "sendBoc", {"boc": EMPTY})
    assert status == 503
    assert "the upstream cannot be reached" in text


CHAIN = make_chain([], (ZeroState(-1, bytes(32), bytes(32), b""),))
BODY = bytes.fromhex("b5ee9c7201010101000600000800000000")
MESSAGE = build_external_message(0, b"\x11" * 32, BODY, (None, None))
TEXT = base64.b64encode(MESSAGE).decode()


@contextmanager
def asked(lake: Path, *servers: SimulatedServer, folder: Path) -> Iterator[Any]:
    """Ask a service whose messages go to these servers."""
    config = write_config(folder / "config.json", *servers)
    settings = patient(upstream={"liteserver": str(config)})
    with TestClient(create_app(lake, settings)) as client:
        yield client


def test_messages_arrive(demo_lake: Path, tmp_path: Path) -> None:
    server = SimulatedServer(CHAIN)
    read = read_message(MESSAGE)
    hashes = [base64.b64encode(read[name]).decode() for name in ("msg_hash", "hash_norm")]
    with server.run(), asked(demo_lake, server, folder=tmp_path) as client:
        answer = client.post("/api/v2/sendBoc", json={"boc": TEXT}).json()
        assert (answer["ok"], answer["result"]) == (True, {"@type": "ok"})
        answer = client.post("/api/v2/sendBocReturnHash", json={"boc": TEXT}).json()
        found = answer["result"]
        assert found["@type"] == "raw.extMessageInfo"
        assert [found["hash"], found["hash_norm"]] == hashes
        answer = client.post("/api/v3/message", json={"boc": TEXT})
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"message_hash": hashes[0], "message_hash_norm": hashes[1]}
        parts = {"address": "0:" + "11" * 32, "body": base64.b64encode(BODY).decode()}
        answer = client.post("/api/v2/sendQuery", json=parts).json()
        assert answer["ok"], answer
    assert server.sent_messages == [MESSAGE] * 4


def test_what_servers_refuse(demo_lake: Path, tmp_path: Path) -> None:
    server = SimulatedServer(CHAIN)
    reason = "cannot apply external message to current state : no"
    with server.run(), asked(demo_lake, server, folder=tmp_path) as client:
        for code, kind in ((0, "UNKNOWN"), (651, "NOTREADY"), (-7, "UNKNOWN")):
            server.refusal = code, reason
            answer = client.post("/api/v2/sendBoc", json={"boc": TEXT})
            assert answer.status_code == 500
            assert answer.json()["error"] == f"LITE_SERVER_{kind}: {reason}"
            answer = client.post("/api/v3/message", json={"boc": TEXT})
            assert answer.status_code == 500, "no fault of the request, as in version 2"
            assert answer.json() == {"error": f"LITE_SERVER_{kind}: {reason}"}
        empty = base64.b64encode(bytes.fromhex("b5ee9c720101010100020000" + "00")).decode()
        asked_before = len(server.asked)
        assert client.post("/api/v2/sendBoc", json={"boc": empty}).status_code == 500
        assert len(server.asked) == asked_before, "what is no message does not leave the house"
    assert server.sent_messages == []


def test_servers_that_are_gone(demo_lake: Path, tmp_path: Path) -> None:
    with SimulatedServer(CHAIN).run() as server:
        pass
    with asked(demo_lake, server, folder=tmp_path) as client:
        answer = client.post("/api/v2/sendBoc", json={"boc": TEXT})
        assert answer.status_code == 503
        assert "no lite server can be reached" in answer.json()["error"]
        (tmp_path / "config.json").unlink()
        answer = client.post("/api/v2/sendBoc", json={"boc": TEXT})
        assert answer.status_code == 503
        assert "cannot be read" in answer.json()["error"]
