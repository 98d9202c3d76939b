"""estimateFee of both versions, compared with the fees that the chain charged."""

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient

from tests.api.v2.conftest import FALSE_PROOF, Asker
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings

EMPTY = "te6cckEBAQEAAgAAAEysuc0="
BAD = "INVALID_BAG_OF_CELLS"
UNUSED = "0:" + "5" * 64
_CHAIN = b"".join(b"\1\0" + cell.to_bytes(2, "big") for cell in range(1, 1025)) + b"\0\0"
_HEAD = b"\xb5\xee\x9c\x72\2\2" + b"".join(n.to_bytes(2, "big") for n in (1025, 1, 0, len(_CHAIN)))
DEEPEST = base64.b64encode(_HEAD + b"\0\0" + _CHAIN).decode()  # 1,024 cells above another

pytestmark = pytest.mark.usefixtures("tvm")


@pytest.fixture(scope="module")
def sent(demo_lake: Path) -> list[dict[str, Any]]:
    """Give the newest message from outside to each of several wallets, and its fees."""
    connection = connect(open_snapshot(demo_lake, check_digests=False), LakeSettings())
    found = connection.execute(
        "select t.workchain, t.account, m.body, t.total_fees - t.storage_fees_collected"
        " - t.compute_gas_fees - coalesce(t.action_total_action_fees, 0) as in_fwd_fee"
        " from transactions t join messages m on m.tx_hash = t.hash and m.direction = 'in'"
        " where m.kind = 'ext_in' and t.workchain = 0 and m.init_state is null"
        " qualify row_number() over (partition by t.account order by t.lt desc) = 1"
    )
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def write(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    address = f"{row['workchain']}:{row['account'].hex()}"
    return {"address": address, "body": base64.b64encode(row["body"]).decode(), **more}


def test_a_message_that_was_run_is_refused_now_and_costs_its_way_in(
    ask: Asker, sent: list[dict[str, Any]]
) -> None:
    assert len(sent) > 10
    for row in sent:
        found = ask.post("estimateFee", **write(row))
        assert found["@type"] == "query.fees"
        assert found["destination_fees"] == []
        fees = found["source_fees"]
        assert (fees["@type"], fees["gas_fee"], fees["fwd_fee"]) == ("fees", 0, 0)
        assert fees["in_fwd_fee"] == row["in_fwd_fee"]
        v3 = ask.client.post("/api/v3/estimateFee", json=write(row)).json()
        assert v3["source_fees"] == {name: fees[name] for name in fees if name != "@type"}
        assert v3["destination_fees"] == []


def test_parts_as_objects(ask: Asker) -> None:
    cell = {"data": {"b64": "", "len": 0}, "refs": []}
    found = ask.post("estimateFeeSimple", address=UNUSED, body=cell)
    assert found == ask.post("estimateFee", address=UNUSED, body=EMPTY)


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"address": UNUSED, "body": "?"}, 422, "the text is not base64"),
        ({"address": UNUSED, "body": ""}, 500, f"{BAD}: body"),
        ({"address": UNUSED, "body": FALSE_PROOF}, 500, f"{BAD}: body"),
        ({"address": UNUSED, "body": DEEPEST}, 500, "LITE_SERVER_UNKNOWN: a message too deep"),
        ({"address": UNUSED, "body": EMPTY, "init_code": "aaaa"}, 500, f"{BAD}: init_code"),
        ({"address": "x", "body": EMPTY}, 422, "Failed to parse ton_addr: 'x'"),
    ],
)
def test_what_is_refused(ask: Asker, body: dict[str, Any], status: int, text: str) -> None:
    for path in ("/api/v2/estimateFee", "/api/v3/estimateFee"):
        answer = ask.client.post(path, json=body)
        assert answer.status_code == status
        assert text in answer.json()["error"]


def test_without_an_address(ask: Asker) -> None:
    answer = ask.client.post("/api/v3/estimateFee", json={"body": EMPTY})
    assert (answer.status_code, answer.json()) == (401, {"error": "address is required"})


def test_without_an_emulator(
    demo_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tonpy.py").write_text('raise ImportError("no wheel for this computer")\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with TestClient(create_app(demo_lake, PATIENT)) as client:
        for path in ("/api/v2/estimateFee", "/api/v3/estimateFee"):
            answer = client.post(path, json={"address": UNUSED, "body": EMPTY})
            assert answer.status_code == 503
            assert "messages cannot be emulated" in answer.json()["error"]


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_bytes_are_answered(ask: Asker, body: bytes, code: bytes) -> None:
    parts = {"body": body, "init_code": code, "init_data": body}
    written = {name: base64.b64encode(part).decode() for name, part in parts.items()}
    answer = ask.client.post("/api/v2/estimateFee", json={"address": UNUSED, **written})
    assert answer.status_code in (200, 500)
    assert answer.json()["ok"] is (answer.status_code == 200)
