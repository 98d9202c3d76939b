"""Messages sent to the network through lite servers, by all methods and routes."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from tests.ingest.source.liteserver.server import SimulatedServer, make_chain
from tests.ingest.source.liteserver.test_follow import write_config
from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.ingest.blocks import ZeroState
from tonlake.ingest.derive.tvm.message import build_external_message, read_message

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
