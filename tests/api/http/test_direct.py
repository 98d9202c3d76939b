"""The fast path to a handler sends the same response as the framework."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from litestar.testing import TestClient

import tonlake.api.http.direct
import tonlake.api.http.lane
import tonlake.api.v3.route.block
from tests.patience import compose
from tonlake.api.app import create_app
from tonlake.api.v3.page import transaction_page
from tonlake.lake.index.rowgroup import cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INFO = "/api/v3/masterchainInfo"
ORIGIN = {"Origin": "https://explorer.example"}
OF_MOMENT = {"server-timing", "content-length"}
PATHS = [
    INFO,
    "/api/v2/getMasterchainInfo",
    "/api/v3/transactions?limit=3&odd=%C3%A9&odd=1",
    "/api/v3/transactions?limit=x",
    "/api/v3/blocks?limit=2&snapshot=1",
    "/api/v3/blocks?snapshot=77",
    "/api/v3/addressInformation",
    "/api/v2/detectAddress?address=x",
    "/api/v2/getAddressBalance",
    "/api/v2/getBlockHeader?workchain=-1&shard=-9223372036854775808&seqno=999999",
]


@contextmanager
def serving(lake: Path, **settings: Any) -> Iterator[TestClient[Any]]:
    app = create_app(lake, compose(**settings))
    with TestClient(app, raise_server_exceptions=False) as client:
        client.headers["accept-encoding"] = "identity"
        yield client


def _compare(client: TestClient[Any], path: str, **headers: str) -> int:
    """Request both ways; the responses are equal except for CORS headers."""
    short = client.get(path, headers=headers)
    long = client.get(path, headers={**headers, **ORIGIN})
    assert "access-control-allow-origin" in long.headers
    told = {
        name: value
        for name, value in long.headers.items()
        if not name.startswith("access-control-") and name not in OF_MOMENT
    }
    assert {n: v for n, v in short.headers.items() if n not in OF_MOMENT} == told
    assert int(short.headers["content-length"]) == len(short.content)
    if "application/json" in short.headers["content-type"]:
        bodies = [{**answer.json(), "@extra": None} for answer in (short, long)]
        assert bodies[0] == bodies[1]
    else:
        assert short.content == long.content
    assert short.status_code == long.status_code
    return int(short.status_code)


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by each path that goes the short way."""
    paths: list[str] = []
    real = tonlake.api.http.direct.Direct.takes

    def note(self: Any, scope: Any) -> bool:
        taken = real(self, scope)
        if taken:
            paths.append(scope["path"])
        return taken

    monkeypatch.setattr(tonlake.api.http.direct.Direct, "takes", note)
    return paths


def test_both_ways_give_the_same(demo_lake: Path, handled: list[str]) -> None:
    with serving(demo_lake, http={"cache_mib": 0}) as client:
        statuses = [_compare(client, path) for path in PATHS]
        _compare(client, "/api/v3/blocks?limit=2", Accept="text/csv")
        _compare(client, "/api/v3/blocks?limit=2", Accept="application/vnd.apache.parquet")
    assert set(statuses) == {200, 401, 404, 422, 500}, statuses
    assert len(handled) == len(PATHS) + 2


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that grows by each try to answer at once: whether that was done."""
    done: list[bool] = []
    real = tonlake.api.http.lane.Lanes.call_at_once

    def note(self: Any, work: Any, shape: Any) -> Any:
        done.append(False)
        found = real(self, work, shape)
        done[-1] = True
        return found

    monkeypatch.setattr(tonlake.api.http.lane.Lanes, "call_at_once", note)
    monkeypatch.setattr(tonlake.api.http.lane, "AT_ONCE_S", 60.0)  # however busy this machine is
    monkeypatch.setattr(tonlake.api.http.lane, "HEAVY_S", 1e9)
    return done


def test_small_answers_are_made_without_a_thread(demo_lake: Path, here: list[bool]) -> None:
    paths = [INFO, INFO + "?odd=1", "/api/v2/getMasterchainInfo", "/api/v2/detectAddress?address=x"]
    with serving(demo_lake, http={"cache_mib": 0}) as client:
        for path in paths:
            client.get(path)
        assert not here  # nothing is known of what they cost
        for path in paths:
            _compare(client, path)
    assert here == [True] * 6 + [False] * 2  # both ways; the last one is an error


def test_what_takes_a_query_goes_to_a_thread_after_all(demo_lake: Path, here: list[bool]) -> None:
    odd = "/api/v3/transactions?sort=asc&workchain=0&limit=3&odd=1"
    with serving(demo_lake, http={"cache_mib": 0}) as client:
        first = client.get(odd)
        second = client.get(odd)
    assert here == [False]
    assert second.json() == first.json()
    assert second.headers["x-tonlake-warning"] == first.headers["x-tonlake-warning"]


def test_files_are_read_in_a_thread_and_their_rows_anywhere(
    demo_lake: Path, here: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_KEPT", cache.RowGroups(cache.KEPT_BYTES))
    page, other = "/api/v3/blocks?limit=3&workchain=-1", "/api/v3/traces?limit=3&sort=asc"
    with serving(demo_lake, http={"cache_mib": 0}) as client:
        for path in (page, other):
            answers = [client.get(path).json() for _ in range(3)]
            assert answers[0] == answers[1] == answers[2]
    assert here == [True] * 4  # the first of each went to a thread: nothing was known of its cost


def test_many_transactions_are_written_in_a_thread(
    demo_lake: Path, here: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_page, "MAX_AT_ONCE", 2)
    with serving(demo_lake, http={"cache_mib": 0}) as client:
        answers = [client.get("/api/v3/transactions?limit=3").json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert here == [False]


def test_no_snapshot_is_opened_in_the_loop(demo_lake: Path, here: list[bool]) -> None:
    service = create_app(demo_lake, compose(http={"cache_mib": 0}))
    with TestClient(service) as client:
        assert client.get(INFO).status_code == 200
        service.state.holder.close()
        assert client.get(INFO).status_code == 200
        assert client.get(INFO).status_code == 200
    assert here == [False]


def test_refusals_and_faults_are_the_same(
    demo_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handled: list[str]
) -> None:
    keys = str(tmp_path / "keys.json")
    limits = {"keys_file": keys, "keys_required": True, "rate_limits": "off"}
    with serving(demo_lake, access=limits) as client:
        assert _compare(client, INFO) == 401
    with serving(demo_lake, access={"rate_limits": "on", "anonymous_rps": 1}) as client:
        assert client.get(INFO).status_code == 200
        answer = client.get(INFO + "?x=1")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    with serving(tmp_path / "none") as client:
        assert _compare(client, INFO) == 503

    def fail(_row: object) -> None:
        raise MemoryError

    monkeypatch.setattr(tonlake.api.v3.route.block, "render_block", fail)
    with serving(demo_lake, http={"cache_mib": 0}) as client:
        assert _compare(client, INFO) == 500
    assert len(handled) == 5


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("HEAD", INFO, {}),
        ("POST", INFO, {}),
        ("OPTIONS", INFO, {}),
        ("GET", INFO + "/", {}),
        ("GET", "/api/v3/nothing", {}),
        ("GET", INFO, {"Host": "a b"}),
        ("GET", INFO, ORIGIN),
        ("GET", "/healthz", {}),
    ],
)
def test_what_needs_the_framework_goes_its_way(
    client: TestClient[Any], handled: list[str], method: str, path: str, headers: dict[str, str]
) -> None:
    answer = client.request(method, path, headers=headers)
    assert answer.headers["x-api-version"]
    assert handled == []


def test_every_operation_can_be_reached_the_short_way(demo_lake: Path, handled: list[str]) -> None:
    with serving(demo_lake, http={"cache_mib": 0}) as client:
        described = msgspec.json.decode(client.get("/openapi.json").content)["paths"]
        paths = {path for path, methods in described.items() if "get" in methods}
        streams = {path for path in paths if path.startswith("/api/streaming/")}  # without end
        for path in paths - streams:
            client.get(path, follow_redirects=False)
    others = paths - streams - set(handled)
    assert {path for path in others if path.startswith("/api/v")} == {"/api/v3/decode"}
