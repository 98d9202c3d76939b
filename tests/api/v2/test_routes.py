"""The envelope, the three forms of request, and refusals."""

import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient

from tests.api.v2.conftest import Asker
from tests.patience import PATIENT, compose, patient
from tonlake.api.app import create_app
from tonlake.api.chain import arguments
from tonlake.api.request.call import converters_of
from tonlake.api.v2 import block, transaction
from tonlake.api.v2.routes import METHODS

MASTER = -(1 << 63)
ADDRESS = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
BLOCK = {"workchain": -1, "shard": MASTER, "seqno": 5}
EXAMPLES: dict[str, dict[str, Any]] = {
    "detectAddress": {"address": ADDRESS},
    "detectHash": {"hash": "0" * 64},
    "packAddress": {"address": ADDRESS},
    "unpackAddress": {"address": ADDRESS},
    "healthcheck": {},
    "getAddressInformation": {"address": ADDRESS, "seqno": 100},
    "getExtendedAddressInformation": {"address": ADDRESS},
    "getWalletInformation": {"address": ADDRESS, "seqno": 200},
    "getAddressBalance": {"address": ADDRESS},
    "getAddressState": {"address": ADDRESS},
    "getShardAccountCell": {"address": ADDRESS},
    "getMasterchainBlockSignatures": {"seqno": 9},
    "getShardBlockProof": {"workchain": 0, "shard": -(1 << 63), "seqno": 9},
    "estimateFee": {"address": ADDRESS, "body": "te6cckEBAQEAAgAAAEysuc0="},
    "estimateFeeSimple": {"address": ADDRESS, "body": {"data": {"b64": "", "len": 0}, "refs": []}},
    "getTransactions": {"address": ADDRESS, "limit": 3, "to_lt": 7, "archival": True},
    "getTransactionsStd": {"address": ADDRESS, "limit": 3},
    "getMasterchainInfo": {},
    "getConsensusBlock": {},
    "getOutMsgQueueSize": {},
    "getOutMsgQueueSizes": {},
    "lookupBlock": {"workchain": 0, "shard": MASTER, "lt": 100000000},
    "shards": {"seqno": 120},
    "getShards": {"seqno": 120},
    "getBlockHeader": BLOCK,
    "getBlockTransactions": {**BLOCK, "count": 1},
    "getBlockTransactionsExt": BLOCK,
    "getConfigParam": {"config_id": 15},
    "getConfigAll": {},
    "getLibraries": {"libraries": ["0" * 64, "1" * 64]},
    "runGetMethod": {"address": ADDRESS, "method": "seqno", "stack": [["num", "7"]], "seqno": 200},
    "runGetMethodStd": {"address": ADDRESS, "method": 85143},
}
LOCATE = ("tryLocateTx", "tryLocateResultTx", "tryLocateSourceTx")


@pytest.fixture(scope="module")
def examples(ask: Asker) -> dict[str, dict[str, Any]]:
    """Parameters with which each method succeeds."""
    page = ask("getTransactions", address=ADDRESS, limit=50)
    message = next(tx["in_msg"] for tx in page if tx["in_msg"]["source"])
    located = {name: message[name] for name in ("source", "destination", "created_lt")}
    return EXAMPLES | dict.fromkeys(LOCATE, located)


REFUSED = {
    *("getTokenData", "dnsResolve", "sendBoc", "sendBocReturnHash"),
    *("sendBocReturnHashNoError", "sendBocUnsafe", "sendQuery"),
    *("sendQuerySimple", "sendCellSimple"),
}
"""Methods with tests of their own: they answer nothing for a wallet, or without a network."""


def _without_clock(result: Any) -> Any:
    if isinstance(result, dict) and "consensus_block" in result:
        return {name: value for name, value in result.items() if name != "timestamp"}
    return result


def _has_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_null(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_null(item) for item in value)
    return value is None


@pytest.mark.parametrize("method", [name for name in METHODS if name not in REFUSED])
def test_get_post_and_rpc_answer_the_same_without_nulls(
    ask: Asker, examples: dict[str, dict[str, Any]], method: str
) -> None:
    params = examples[method]
    expected = _without_clock((ask.post if METHODS[method].post_only else ask)(method, **params))
    assert not _has_null(expected)
    as_text = {
        name: str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in params.items()
    }
    for body in (params, as_text, {**params, "of_no_method": [1, {"a": None}]}):
        assert _without_clock(ask.post(method, **body)) == expected
        answer = ask.rpc(method, body)
        assert answer.status_code == 200
        assert _without_clock(answer.json()["result"]) == expected


def test_what_no_query_can_hold_is_post_alone(ask: Asker) -> None:
    for method in (name for name, known in METHODS.items() if known.post_only):
        status, text = ask.refused(method, address=ADDRESS, method="seqno")
        assert (status, text) == (405, "unsupported http method: GET")


def test_the_envelope(ask: Asker) -> None:
    answer = ask.raw("getAddressBalance", address=ADDRESS)
    body = answer.json()
    assert body.keys() == {"ok", "result", "@extra"}
    assert re.fullmatch(r"[0-9]{10}:_:[0-9]+\.[0-9]+", body["@extra"])
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-api-version"]
    assert answer.headers["x-tonlake-snapshot"] == "1:238"
    failed = ask.raw("getAddressBalance", address="x").json()
    assert failed.keys() == {"ok", "error", "code", "@extra"}


@pytest.mark.parametrize("rpc_id", ["1", 1, "", 0, None, 2.5, True, ["a"], {"b": 1}])
def test_rpc_echoes_the_id_as_sent(ask: Asker, rpc_id: object) -> None:
    for method, status in (("getMasterchainInfo", 200), ("noSuchMethod", 404)):
        request = {"jsonrpc": "2.0", "id": rpc_id, "method": method}
        answer = ask.client.post("/api/v2/jsonRPC", json=request)
        assert answer.status_code == status
        body = answer.json()
        assert body["jsonrpc"] == "2.0"
        assert body["id"] == rpc_id
        assert type(body["id"]) is type(rpc_id)
        assert body["ok"] is (status == 200)


def test_rpc_without_id(ask: Asker) -> None:
    answer = ask.client.post("/api/v2/jsonRPC", json={"method": "healthcheck"})
    assert "id" not in answer.json()


@pytest.mark.parametrize("params", [None, {}, []])
def test_rpc_without_params(ask: Asker, params: object) -> None:
    assert ask.rpc("getMasterchainInfo", params).status_code == 200


@pytest.mark.parametrize("params", [[1], "x", "", 5, 0, True, False])
def test_rpc_params_must_be_an_object(ask: Asker, params: object) -> None:
    answer = ask.rpc("getMasterchainInfo", params)
    assert answer.status_code == 422
    assert answer.json()["error"] == "params must contain an object"


def test_rpc_errors_are_those_of_the_method(ask: Asker) -> None:
    answer = ask.rpc("shards", {"seqno": 4000})
    body = answer.json()
    assert answer.status_code == body["code"] == 500
    assert body["error"] == "LITE_SERVER_NOTREADY: seqno not in db"
    assert (body["ok"], body["@extra"], body["id"]) == (False, "_", "1")
    body = ask.rpc("shards", {}).json()
    assert body["error"] == "failed to parse post request: failed to parse seqno"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'[{"method":"shards"}]', b"null", b"\xff"])
def test_a_body_that_is_no_object_is_refused(ask: Asker, body: bytes) -> None:
    for path in ("jsonRPC", "shards"):
        answer = ask.client.post(f"/api/v2/{path}", content=body)
        assert answer.status_code == 422
        assert answer.json()["ok"] is False
        assert answer.json()["error"].startswith("failed to parse post request: ")


def test_deep_json_is_refused_and_not_fatal(ask: Asker) -> None:
    answer = ask.client.post("/api/v2/jsonRPC", content=b"[" * 100_000)
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "value", [True, [1], {"a": 1}, 1.5, 1e300, "1e3", "0x10", " 1", "+1", "٣", "1" * 100]
)
def test_a_number_must_be_one(ask: Asker, value: object) -> None:
    answer = ask.client.post("/api/v2/shards", json={"seqno": value})
    assert answer.status_code == 422
    assert answer.json()["error"] == "failed to parse post request: failed to parse seqno"


def test_a_whole_number_may_be_written_with_a_point(ask: Asker) -> None:
    assert ask.post("shards", seqno=5.0) == ask("shards", seqno=5)


def test_unknown_paths_and_verbs(ask: Asker) -> None:
    for path in ("nope", "a/b/c", "getTransactions/x", ""):
        answer = ask.client.get(f"/api/v2/{path}")
        assert answer.status_code == 404, path
        assert answer.json() == {"ok": False, "error": "Not Found", "code": 404, "@extra": "_"}
    for verb in ("PUT", "DELETE", "PATCH"):
        answer = ask.client.request(verb, "/api/v2/getMasterchainInfo")
        assert answer.status_code == 405
        assert answer.json()["error"] == f"unsupported http method: {verb}"
    answer = ask.client.get("/api/v2/jsonRPC")
    assert (answer.status_code, answer.json()["error"]) == (405, "method GET is not supported")


def test_unknown_and_repeated_parameters_are_named(ask: Asker) -> None:
    answer = ask.client.get(f"/api/v2/getAddressBalance?address=x&address={ADDRESS}&foo=1")
    assert answer.status_code == 200
    assert "foo" in answer.headers["x-tonlake-warning"]
    assert "address" in answer.headers["x-tonlake-warning"]


def test_strict_parameters(demo_lake: Path) -> None:
    with TestClient(create_app(demo_lake, patient(http={"strict_parameters": True}))) as client:
        answer = client.get("/api/v2/getMasterchainInfo?foo=1")
        assert answer.status_code == 422
        assert answer.json()["ok"] is False
        assert client.get("/api/v2/getMasterchainInfo?api_key=1").status_code == 200


def test_an_empty_lake_still_answers_what_needs_none(tmp_path: Path) -> None:
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        assert client.get("/api/v2/healthcheck").json()["result"] == "OK"
        assert client.get("/api/v2/detectHash", params={"hash": "0" * 64}).status_code == 200
        answer = client.get("/api/v2/getMasterchainInfo")
        assert answer.status_code == 503
        assert answer.json()["ok"] is False


@mock.patch.object(transaction, "DEFAULT_LIMIT", 2)
@mock.patch.object(block, "DEFAULT_COUNT", 1)
@mock.patch.object(arguments, "MAX_COUNT", 2)
def test_settings_bound_the_pages(demo_lake: Path) -> None:
    settings = compose(http={"max_limit": 3})
    with TestClient(create_app(demo_lake, settings)) as client:
        page = client.get("/api/v2/getTransactions", params={"address": ADDRESS})
        assert len(page.json()["result"]) == 2
        answer = client.get("/api/v2/getTransactions", params={"address": ADDRESS, "limit": 4})
        assert answer.json()["error"].endswith("limit should be less or equal 3")
        block = client.get("/api/v2/getBlockTransactions", params=BLOCK).json()["result"]
        assert (block["req_count"], block["incomplete"]) == (1, True)
        answer = client.get("/api/v2/getBlockTransactions", params={**BLOCK, "count": 3})
        assert answer.json()["error"].endswith("count should be less or equal 2")


NUMBERS = st.sampled_from([-(1 << 63), -(1 << 31), -1, 0, 1, 5, 238, (1 << 31) - 1, (1 << 63) - 1])
SCALARS = (
    NUMBERS
    | NUMBERS.map(str)
    | st.sampled_from([ADDRESS, "0" * 64, "", "true", "null", -(1 << 64), 1 << 64, 1e300, "1e5"])
    | st.text(max_size=60)
    | st.booleans()
)
ENTRIES = st.tuples(
    st.sampled_from(["num", "cell", "slice", "tuple", "list", "null", "x"]), SCALARS
)
VALUES = (
    SCALARS
    | st.none()
    | st.lists(SCALARS, max_size=3)
    | st.lists(ENTRIES, max_size=3)
    | st.just({"a": 1})
)
WANTED = {
    "address": ADDRESS,
    "source": ADDRESS,
    "destination": ADDRESS,
    "workchain": 0,
    "shard": -(1 << 63),
    "seqno": 100,
    "libraries": ["0" * 64],
    "hash": "0" * 64,
    "created_lt": 5,
    "method": "seqno",
    "stack": [["num", 5], ["tvm.Slice", "te6ccgEBAQEAAgAAAA=="]],
    "boc": "te6ccgEBAQEAAgAAAA==",
    "body": "te6ccgEBAQEAAgAAAA==",
}


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw a method and parameters, most of them right."""
    method = draw(st.sampled_from(sorted(METHODS)))
    names = list(converters_of(METHODS[method].params))
    params: dict[str, Any] = {name: WANTED[name] for name in names if name in WANTED}
    for name in draw(st.lists(st.sampled_from([*names, "x"]), max_size=3)):
        params[name] = draw(VALUES)
    return method, params


@settings(max_examples=60, deadline=None)
@given(requests())
def test_every_answer_is_an_envelope(ask: Asker, request: tuple[str, dict[str, Any]]) -> None:
    method, params = request
    by_post = ask.client.post(f"/api/v2/{method}", json=params)
    by_rpc = ask.rpc(method, params)
    plain = {name: value for name, value in params.items() if not isinstance(value, dict)}
    by_get = ask.raw(method, **plain)
    assert by_post.status_code == by_rpc.status_code
    for answer in (by_post, by_rpc, by_get):
        body = answer.json()
        assert body["ok"] is (answer.status_code == 200)
        assert "@extra" in body
        if not body["ok"]:
            assert body["code"] == answer.status_code
            expected = {404, 409, 422, 500}
            if METHODS[method].post_only:
                expected |= {405} if answer is by_get else {503, 542}
            assert answer.status_code in expected
            assert body["error"] != "internal server error"


def test_text_beyond_ascii_is_no_bag(ask: Asker) -> None:
    for method, names in (
        ("sendBoc", ("boc",)),
        ("sendQuery", ("body", "init_code", "init_data")),
        ("estimateFee", ("body", "init_code", "init_data")),
    ):
        for name in names:
            params = {"address": ADDRESS, "body": WANTED["body"], name: "\u0663"}
            answer = ask.client.post(f"/api/v2/{method}", json=params)
            assert answer.status_code == 422, (method, name, answer.text)
