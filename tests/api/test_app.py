"""Properties of all responses: headers, errors, limits, and a real server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from litestar.testing import TestClient

import tonlake.api.app
import tonlake.api.v3.route.block
import tonlake.queries.reader
from tests.patience import compose
from tonlake.api.app import create_app, create_application
from tonlake.api.errors import STATUS, ApiError, UpstreamRefusal, status_of
from tonlake.queries.errors import QueryTimeout
from tonlake.queries.loader import load_queries

INFO = "/api/v3/masterchainInfo"


@contextmanager
def serving(lake: Path, **settings: Any) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(lake, compose(**settings)), raise_server_exceptions=False) as client:
        yield client


def test_every_answer_carries_the_same_headers(client: TestClient[Any]) -> None:
    for path in (INFO, "/api/v3/transactions?limit=x", "/api/v3/addressInformation", "/healthz"):
        headers = client.get(path).headers
        assert headers["x-api-version"].count(".") == 2
        assert headers["server-timing"].startswith("app;dur=")
    answer = client.get(INFO)
    assert answer.headers["x-tonlake-snapshot"] == "1:238"
    assert answer.headers["content-type"] == "application/json"
    assert "x-tonlake-warning" not in answer.headers


def test_every_media_type_names_its_character_set_once(demo_lake: Path) -> None:
    settings = compose(sql={"enabled": True})
    routes = create_application(settings, {}, [], []).routes
    paths = [route.path for route in routes if "{" not in route.path]
    seen = set()
    with serving(demo_lake, sql={"enabled": True}) as client:
        for path in paths:
            if not path.startswith("/api/streaming/"):
                seen.add(client.get(path).headers.get("content-type", ""))
    assert all(kind.count("charset") == kind.startswith("text/") for kind in seen), seen
    assert {"text/css; charset=utf-8", "text/javascript; charset=utf-8"} <= seen


def test_browsers_of_any_origin_may_read(client: TestClient[Any]) -> None:
    headers = client.get(INFO, headers={"Origin": "https://explorer.example"}).headers
    assert headers["access-control-allow-origin"] == "*"
    assert "X-Tonlake-Snapshot" in headers["access-control-expose-headers"]


@pytest.mark.parametrize("path", ["/api/v3/nothing", "/api/v3/", "/nothing", "/api/v3/blocks/1"])
def test_an_unknown_path_is_404(client: TestClient[Any], path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("unknown path: ")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_wrong_method_is_405(client: TestClient[Any], method: str) -> None:
    answer = client.request(method, INFO)
    assert answer.status_code == 405
    assert answer.json() == {"error": f"method {method} is not allowed on {INFO}"}


ALLOWED = {
    INFO: "GET, HEAD, OPTIONS",
    "/api/v2/getMasterchainInfo": "GET, HEAD, OPTIONS, POST",
    "/api/v2/jsonRPC": "OPTIONS, POST",
    "/api/v2/no/such/method": "GET, HEAD, OPTIONS, POST",
    "/api/v3/runGetMethod": "OPTIONS, POST",
    "/account/EQ": "GET, HEAD, OPTIONS",
    "/healthz": "GET, OPTIONS",
}


@pytest.mark.parametrize("path", ALLOWED)
def test_what_a_path_takes_is_said(client: TestClient[Any], path: str) -> None:
    refused = client.request("DELETE", path)
    assert (refused.status_code, refused.headers["allow"]) == (405, ALLOWED[path])
    asked = client.options(path)
    assert (asked.status_code, asked.headers["allow"]) == (204, ALLOWED[path])


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("/nothing", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"),
        ("/nothing", "*/*", "application/json"),
        ("/nothing", "application/json", "application/json"),
        ("/api/v3/nothing", "text/html", "application/json"),
        ("/api/v2/nothing", "text/html", "application/json"),
    ],
)
def test_an_unknown_path_is_a_page_for_readers(
    client: TestClient[Any], path: str, accept: str, kind: str
) -> None:
    answer = client.get(path, headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (404, kind)
    assert (kind == "application/json") == answer.text.startswith("{")


def test_odd_parameters_are_named(client: TestClient[Any]) -> None:
    answer = client.get("/api/v3/blocks?owner_id=1&limit=1&limit=2&sort=asc")
    assert answer.status_code == 200
    assert len(answer.json()["blocks"]) == 2
    assert answer.headers["x-tonlake-warning"] == (
        "unknown parameter 'owner_id'; repeated parameter 'limit', the last one counts"
    )
    many = client.get("/api/v3/blocks?limit=1&" + "&".join(f"x{n}=" for n in range(30)))
    assert many.headers["x-tonlake-warning"].endswith("and 20 more")
    rude = client.get("/api/v3/blocks?limit=1&%0d%0aSet-Cookie:x=1")
    assert "set-cookie" not in rude.headers


def test_strict_parameters_are_refused(demo_lake: Path) -> None:
    with serving(demo_lake, http={"strict_parameters": True}) as client:
        answer = client.get("/api/v3/blocks?owner_id=1")
        assert answer.status_code == 422
        assert answer.json() == {"error": "unknown parameter 'owner_id'"}
        assert client.get("/api/v3/blocks?limit=1&api_key=k&x_timeout=5000").status_code == 200


def test_a_fault_tells_nothing_about_the_inside(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_row: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(tonlake.api.v3.route.block, "render_block", fail)
    with serving(demo_lake) as client:
        answer = client.get(INFO)
    assert (answer.status_code, answer.json()) == (500, {"error": "internal server error"})
    assert "/secret/path" in caplog.text


ASKED_BY_SQL = f"/api/v3/transactions?exclude_account=0:{'0' * 64}"
"""A list that no index answers."""


@pytest.fixture
def endless_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the list of transactions wait for a count that takes hours on any machine."""
    query = load_queries()["v3/transaction_keys"]
    count = "select count(*) as n from range(10000000) a, range(10000000) b where a <> b"
    sql = f"select k.* from ({query.sql}\n) as k, ({count}) as endless where n > 0"  # noqa: S608
    slow = {**load_queries(), query.name: msgspec.structs.replace(query, sql=sql)}
    monkeypatch.setattr(tonlake.queries.reader, "load_queries", lambda: slow)


@pytest.mark.usefixtures("endless_transactions")
def test_a_slow_query_is_503(demo_lake: Path) -> None:
    with serving(demo_lake, http={"query_timeout_ms": 100}) as client:
        answer = client.get(ASKED_BY_SQL)
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert "took longer than 100 ms: narrow it by start_utime and end_utime" in error
    assert answer.headers["retry-after"] == "1"


@pytest.mark.usefixtures("endless_transactions")
def test_a_request_may_shorten_its_time(client: TestClient[Any]) -> None:
    answer = client.get(ASKED_BY_SQL, headers={"X-Timeout": "100"})
    assert answer.status_code == 503
    for bad in ("soon", "", "0", "-1", "1.5", "9" * 5000):
        assert client.get(INFO, headers={"X-Timeout": bad}).status_code == 200
    assert client.get(INFO, params={"x_timeout": "\N{ARABIC-INDIC DIGIT ONE}"}).status_code == 200


def test_too_large_an_answer_is_refused(demo_lake: Path) -> None:
    with serving(demo_lake, http={"response_bytes": 1000}) as client:
        answer = client.get(INFO)
    assert answer.status_code == 422
    assert "ask for fewer rows" in answer.json()["error"]


def test_too_many_requests_get_retry_after(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = threading.Event(), threading.Event()
    real = tonlake.api.v3.route.block.render_block

    def wait(row: dict[str, Any]) -> object:
        entered.set()
        leave.wait(10)
        return real(row)

    monkeypatch.setattr(tonlake.api.v3.route.block, "render_block", wait)
    with serving(demo_lake, http={"requests_in_flight": 1}) as client:
        slow = threading.Thread(target=lambda: client.get(INFO))
        slow.start()
        assert entered.wait(10)
        refused = [client.get(path) for path in (INFO + "?x=1", "/api/v2/getMasterchainInfo")]
        watched = [client.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")]
        leave.set()
        slow.join()
        for answer in refused:
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["error"] == "too many requests at once"
        assert watched == [200, 200, 200]  # who watches it is not to take it for dead
        assert client.get(INFO).status_code == 200


def test_after_a_pause_of_the_process_the_few_who_ask_are_answered(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tonlake.api.http.admission.Pulse.measure_s", lambda _self: 60.0)
    with serving(demo_lake) as client:
        assert client.get(INFO).status_code == 200


def test_every_error_has_a_status() -> None:
    def walk(kind: type[Exception]) -> Iterator[type[Exception]]:
        for sub in kind.__subclasses__():
            yield sub
            yield from walk(sub)

    for kind in walk(ApiError):
        assert kind is UpstreamRefusal or any(base in STATUS for base in kind.__mro__), kind
    assert status_of(QueryTimeout("x")) == 503
    assert status_of(ZeroDivisionError()) == 500


HEADER = "X-Tonlake-Answered-By"
RANKED = "/api/v3/topAccountsByBalance?limit=3"
FILTERED = f"/api/v3/transactions?limit=3&exclude_account=0:{'0' * 64}"


def test_what_answered_is_named_only_where_that_is_asked_for(demo_lake: Path) -> None:
    for debug in (True, False):
        with TestClient(create_app(demo_lake, compose(http={"debug_headers": debug}))) as client:
            found = [client.get(path).headers.get(HEADER) for path in (RANKED, FILTERED)]
            assert found == (["index", "mixed"] if debug else [None, None])
