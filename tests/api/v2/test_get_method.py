"""Get-methods over the demo lake give the lite server's answers, now and in the past."""

import base64
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from litestar.testing import TestClient
from pytoniq_core import Cell

from tests.api.recorded import list_calls, read_recorded, read_typed
from tests.api.v2.conftest import FALSE_PROOF, Asker
from tests.conftest import Facts
from tests.patience import PATIENT
from tonlake.api.app import Service, create_app
from tonlake.api.errors import status_of
from tonlake.ingest.derive.tvm import pool as tvm_pool
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.errors import (
    TvmBusy,
    TvmCrash,
    TvmMissing,
    TvmRefusal,
    TvmStackLarge,
    TvmTimeout,
)

POST = "failed to parse post request: "
SHOP = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
CALL = {"address": SHOP, "method": "seqno"}
UNREADABLE = "a cell of the stack cannot be read"
UNUSED = "0:" + "5" * 64
SEQNO_ID = method_id("seqno")

pytestmark = pytest.mark.usefixtures("tvm")


@pytest.fixture(scope="module")
def service(demo_lake: Path) -> Service:
    """Return a service that does not mind a busy computer."""
    return create_app(demo_lake, PATIENT)


@pytest.fixture(scope="module")
def patient(service: Service, asker: type[Asker]) -> Iterator[Asker]:
    """Ask that service."""
    with TestClient(service) as client:
        yield asker(client)


def refuse(ask: Asker, path: str = "/api/v2/runGetMethod", **body: Any) -> tuple[int, str]:
    answer = ask.client.post(path, json=body)
    return answer.status_code, answer.json()["error"]


def test_every_recorded_call(patient: Asker, facts: Facts) -> None:
    count = 0
    for what, (body, answer) in list_calls(facts.summary):
        found = patient.post("runGetMethodStd", **body)
        assert found["exit_code"] == answer["exit_code"], what
        assert [read_typed(entry) for entry in found["stack"]] == read_recorded(answer), what
        assert found["@type"] == "smc.runResult"
        assert 0 < found["gas_used"] < 1_000_000
        count += 1
    assert count == 115


def test_the_past(patient: Asker, facts: Facts) -> None:
    """The seqno of wallets, run at past blocks, is what their data said then."""
    wallets = [c["address"] for c in facts.summary["contracts"] if c["kind"].startswith("wallet")]
    histories = set()
    for address in wallets[:5]:
        history = []
        for seqno in (30, 80, 140, 200, 238):
            known = patient("getWalletInformation", address=address, seqno=seqno)
            found = patient.post("runGetMethod", address=address, method="seqno", seqno=seqno)
            assert found["block_id"]["seqno"] == seqno
            assert found["last_transaction_id"] == known["last_transaction_id"]
            if known["account_state"] != "active":
                assert found["exit_code"] == -13
                continue
            assert found["stack"] == [["num", hex(known["seqno"])]]
            history.append(known["seqno"])
        histories.add(tuple(history))
    assert any(len(set(history)) > 1 for history in histories), "nothing changed in between"


def test_unknown_block(patient: Asker) -> None:
    text = "LITE_SERVER_NOTREADY: seqno not in db"
    assert refuse(patient, address=SHOP, method="seqno", seqno=239) == (500, text)


def test_method_by_name_number_and_numeric_text(patient: Asker) -> None:
    found = [
        patient.post("runGetMethod", address=SHOP, method=method, stack=[])
        for method in ("seqno", SEQNO_ID, str(SEQNO_ID))
    ]
    assert found[0] == found[1] == found[2]
    assert found[0]["exit_code"] == 0
    via_rpc = patient.rpc("runGetMethod", {"address": SHOP, "method": "seqno", "stack": []})
    assert via_rpc.json()["result"] == found[0]


def test_unknown_method_leaves_its_id(patient: Asker) -> None:
    found = patient.post("runGetMethod", address=SHOP, method="no_such_method")
    assert found["exit_code"] == 11
    assert found["stack"] == [["num", hex(method_id("no_such_method"))]]
    negative = patient.post("runGetMethod", address=SHOP, method=-5)
    assert (negative["exit_code"], negative["stack"]) == (11, [["num", "-0x5"]])


def test_account_without_code(patient: Asker) -> None:
    stack = [["num", "-2"], ["list", {"elements": []}]]
    found = patient.post("runGetMethod", address=UNUSED, method="seqno", stack=stack)
    assert (found["exit_code"], found["gas_used"]) == (-13, 0)
    empty = ["list", {"@type": "tvm.list", "elements": []}]
    assert found["stack"] == [["num", "-0x2"], empty, ["num", hex(SEQNO_ID)]]
    typed = patient.post("runGetMethodStd", address=UNUSED, method="seqno")["stack"]
    assert [entry["@type"] for entry in typed] == ["tvm.stackEntryNumber"]


def test_arguments_come_back_in_both_forms(patient: Asker) -> None:
    """A method leaves what it does not take: the stack below its result."""
    boc = base64.b64encode(Cell.empty().to_boc(hash_crc32=True)).decode()
    stack = [["tvm.Slice", boc], ["tuple", {"elements": [["num", "1"], ["tvm.Slice", boc]]}]]
    body = {"address": SHOP, "method": "seqno", "stack": stack}
    legacy = patient.post("runGetMethod", **body)["stack"]
    assert legacy[0] == ["cell", {"bytes": boc}]
    assert legacy[1][0] == "tuple"
    typed = patient.post("runGetMethodStd", **body)["stack"]
    assert typed[0] == {
        "@type": "tvm.stackEntrySlice",
        "slice": {"@type": "tvm.slice", "bytes": boc},
    }
    assert typed[1]["tuple"]["elements"] == legacy[1][1]["elements"]
    assert patient.post("runGetMethodStd", **{**body, "stack": typed[:2]})["stack"] == typed


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"method": "seqno"}, 422, f"{POST}Failed to parse ton_addr: ''"),
        ({"address": SHOP}, 422, f"{POST}failed to parse method"),
        ({"address": SHOP, "method": str(1 << 31)}, 422, f"{POST}failed to parse method"),
        ({**CALL, "stack": "[]"}, 422, f"{POST}failed to parse stack"),
        (
            {**CALL, "stack": [["tvm.Cell", FALSE_PROOF]]},
            422,
            f"{UNREADABLE}: Merkle cell 0 does not store the hashes of its children",
        ),
        ({**CALL, "seqno": -1}, 422, "failed to validate request: seqno should be positive"),
        ({**CALL, "stack": [["num", "x"]]}, 422, "'x' is not an integer of the stack"),
        ({**CALL, "stack": [["word", "x"]]}, 542, "Unsupported stack entry type: word"),
    ],
)
def test_what_is_refused(ask: Asker, body: dict[str, Any], status: int, text: str) -> None:
    for path in ("runGetMethod", "runGetMethodStd"):
        assert refuse(ask, f"/api/v2/{path}", **body) == (status, text)


def test_results_nested_too_deep(service: Service, patient: Asker) -> None:
    with mock.patch.object(tvm_pool, "STACK_DEPTH", 1):
        usual, service.state.tvm = service.state.tvm, TvmPool(PATIENT.tvm)
    try:
        stack = [["tuple", {"elements": []}]]
        body: dict[str, Any] = {"address": SHOP, "method": "seqno", "stack": stack}
        assert refuse(patient, **body) == (533, "Result stack depth >= 100")
        v3 = {**body, "stack": [{"type": "tuple", "value": []}]}
        assert refuse(patient, "/api/v3/runGetMethod", **v3) == (500, "Result stack depth >= 100")
    finally:
        service.state.tvm.close()
        service.state.tvm = usual


def test_a_killed_worker_does_no_harm(service: Service, patient: Asker) -> None:
    body = {"address": SHOP, "method": "seqno"}
    expected = patient.post("runGetMethod", **body)
    for _ in range(3):
        for worker in service.state.tvm._workers:
            if worker.pid is not None:
                os.kill(worker.pid, signal.SIGKILL)
                worker._process.wait()
        assert patient.post("runGetMethod", **body) == expected


def test_without_tonpy(demo_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tonpy.py").write_text('raise ImportError("no wheel for this computer")\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with TestClient(create_app(demo_lake, PATIENT)) as client:
        for path in ("/api/v2/runGetMethod", "/api/v2/runGetMethodStd", "/api/v3/runGetMethod"):
            answer = client.post(path, json={"address": SHOP, "method": "seqno"})
            assert answer.status_code == 200
        nobody = client.post("/api/v2/runGetMethod", json={"address": UNUSED, "method": "seqno"})
        assert nobody.json()["result"]["exit_code"] == -13


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (TvmMissing, 503),
        (TvmBusy, 503),
        (TvmTimeout, 500),
        (TvmCrash, 500),
        (TvmRefusal, 500),
        (TvmStackLarge, 500),
    ],
)
def test_statuses(kind: type[Exception], status: int) -> None:
    assert status_of(kind("x")) == status
