"""Keys, rates and proxies as clients see them: no form of request bypasses them."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.exceptions import WebSocketDisconnect
from litestar.testing import TestClient

from tests.clock import Clock
from tests.patience import compose
from tonlake.api.access import add_key
from tonlake.api.app import create_app
from tonlake.api.errors import KeyFileInvalid
from tonlake.api.http.gate import FORWARDED, AccessRules, Gate, TokenBuckets, read_networks
from tonlake.api.settings import AccessSettings
from tonlake.lake.errors import SettingsError

INFO = "/api/v3/masterchainInfo"
WAYS = [
    ("GET", INFO, None),
    ("HEAD", INFO, None),
    ("GET", INFO + "/", None),
    ("GET", "/api/v3//masterchainInfo", None),
    ("GET", "/api/v2/getMasterchainInfo", None),
    ("POST", "/api/v2/jsonRPC", {"method": "getMasterchainInfo", "params": {}}),
    ("POST", "/api/v3/runGetMethod", {}),
    ("GET", "/metrics", None),
    ("GET", "/sql", None),
    ("GET", "/", None),
    ("GET", "/api/streaming/v2/sse?types=blocks", None),
]


@contextmanager
def serving(lake: Path, clock: Clock, **settings: Any) -> Iterator[TestClient[Any]]:
    with TestClient(
        create_app(lake, compose(**settings), clock), raise_server_exceptions=False
    ) as client:
        yield client


def requiring_keys(lake: Path, keys: Path) -> AbstractContextManager[TestClient[Any]]:
    return serving(lake, Clock(), access={"keys_file": str(keys), "keys_required": True})


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_no_way_of_asking_gets_around_a_required_key(demo_lake: Path, keys: Path) -> None:
    key = add_key(keys, "mine", 10)
    wrong: list[Any] = [{}, {"X-API-Key": ""}, {"X-API-Key": key[:-1]}, {"X-API-Key": b"\xff"}]
    with requiring_keys(demo_lake, keys) as client:
        assert client.get(INFO, headers={"X-API-Key": key}).status_code == 200  # kept from now on
        for method, path, body in WAYS:
            for headers in wrong:
                answer = client.request(method, path, json=body, headers=headers)
                assert answer.status_code == 401, (method, path)
                assert key[:-1] not in answer.text


def test_a_key_opens_by_header_and_by_parameter(demo_lake: Path, keys: Path) -> None:
    key = add_key(keys, "mine", 10)
    with requiring_keys(demo_lake, keys) as client:
        for _ in range(2):
            assert client.get(INFO, headers={"x-api-key": key}).status_code == 200
            assert client.get(INFO, params={"api_key": key}).status_code == 200
            assert client.get("/api/v2/getMasterchainInfo", params={"api_key": key}).json()["ok"]
        wrong = client.get(INFO, params={"api_key": key}, headers={"X-API-Key": "other"})
        assert wrong.status_code == 401  # the header counts
        assert wrong.json() == {"error": "API key does not exist"}
        asked = client.get("/api/v2/getMasterchainInfo").json()
        assert (asked["ok"], asked["code"]) == (False, 401)
        assert "X-API-Key" in asked["error"]


def test_who_watches_needs_no_key(demo_lake: Path, keys: Path) -> None:
    with requiring_keys(demo_lake, keys) as client:
        for path in ("/healthz", "/healthcheck", "/readyz", "/version", "/docs", "/openapi.json"):
            assert client.get(path).status_code == 200, path
        preflight = client.options(
            INFO, headers={"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}
        )
        assert preflight.status_code == 204


def test_without_a_file_keys_are_not_looked_at(demo_lake: Path) -> None:
    with serving(demo_lake, Clock()) as client:
        assert client.get(INFO, headers={"X-API-Key": "anything"}).status_code == 200


def test_keys_that_are_required_need_a_file(tmp_path: Path) -> None:
    with pytest.raises(KeyFileInvalid, match="keys_file"):
        create_app(tmp_path, compose(access={"keys_required": True}))


def test_limits_hold_for_kept_answers_too(demo_lake: Path) -> None:
    clock = Clock()
    with serving(demo_lake, clock, access={"rate_limits": "on", "anonymous_rps": 2}) as client:
        for second in range(3):
            clock.now_s = second * 10
            assert [client.get(INFO).status_code for _ in range(4)] == [200, 200, 429, 429]
            refused = client.get(INFO, headers={"Origin": "https://a.example"})
            assert refused.headers["retry-after"] == "1"
            assert refused.headers["access-control-allow-origin"] == "*"
            assert refused.json() == {
                "error": "Ratelimit exceeded: 2 requests a second are allowed"
            }
            assert client.get("/api/v2/getMasterchainInfo").json()["code"] == 429
            assert client.get("/").status_code == 429
            assert client.get("/healthz").status_code == 200


def test_an_answer_says_what_is_left(demo_lake: Path, keys: Path) -> None:
    key, clock = add_key(keys, "mine", 4), Clock()
    names = ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")

    def read(client: TestClient[Any], **headers: str) -> list[str | None]:
        answer = client.get(INFO, headers=headers)
        return [str(answer.status_code), *(answer.headers.get(name) for name in names)]

    access = {"keys_file": str(keys), "rate_limits": "on", "anonymous_rps": 2}
    with serving(demo_lake, clock, access=access) as client:
        assert [read(client) for _ in range(3)] == [
            ["200", "2", "1", "1"],
            ["200", "2", "0", "1"],
            ["429", "2", "0", "1"],
        ]
        assert read(client, **{"X-API-Key": key}) == ["200", "4", "3", "1"]
        clock.now_s = 10
        assert read(client) == ["200", "2", "1", "1"]
        clock.now_s = 11
        known = client.get(INFO, headers={"If-None-Match": "*"})
        assert (known.status_code, known.headers["ratelimit-remaining"]) == (304, "1")
        exposed = client.get(INFO, headers={"Origin": "https://a.example"}).headers
        shown = exposed["access-control-expose-headers"].lower().replace(" ", "").split(",")
        assert {*names, "etag", "retry-after"} <= set(shown)
        assert not set(names) & set(client.get("/healthz").headers)
    with serving(demo_lake, clock, access={"rate_limits": "off"}) as client:
        assert read(client) == ["200", None, None, None]


def test_each_key_has_a_limit_of_its_own(demo_lake: Path, keys: Path) -> None:
    slow, fast = add_key(keys, "slow", 2), add_key(keys, "fast", 5)
    with serving(
        demo_lake, Clock(), access={"keys_file": str(keys), "rate_limits": "on"}
    ) as client:
        counts = [
            sum(client.get(INFO, headers=headers).status_code == 200 for _ in range(8))
            for headers in ({"X-API-Key": slow}, {"X-API-Key": fast}, {})
        ]
        assert counts == [2, 5, 1]
        guesses = [client.get(INFO, headers={"X-API-Key": f"{n}"}).status_code for n in range(3)]
        assert guesses == [429, 429, 429]  # guessing counts as asking without a key


@pytest.mark.parametrize(
    ("host", "chosen", "limited"),
    [
        *(("127.0.0.1", "auto", False), ("0.0.0.0", "auto", True), ("::1", "auto", False)),  # noqa: S104
        *(("127.0.0.1", "on", True), ("0.0.0.0", "off", False)),  # noqa: S104
    ],
)
def test_limits_are_off_on_the_own_machine(
    host: str,
    chosen: Any,
    limited: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    rules = AccessRules(AccessSettings(rate_limits=chosen), host, Clock())

    async def take(_scope: Any, _receive: Any, _send: Any) -> None:
        """Take what passes the gate: everything, with a note."""

    gate = Gate(take, rules, trusted=[])
    scopes: list[Any] = [
        {"type": "http", "path": INFO, "headers": [], "query_string": b"", "client": ("::2", 1)}
        for _ in range(2)
    ]
    for scope in scopes:
        asyncio.run(gate(scope, *[None] * 2))  # type: ignore[arg-type]
    assert "refusal" not in scopes[0].get("state", {})
    assert ("refusal" in scopes[1].get("state", {})) is limited


def test_a_socket_without_a_key_is_not_opened(demo_lake: Path, keys: Path) -> None:
    key = add_key(keys, "mine", 10)
    with requiring_keys(demo_lake, keys) as client:
        with client.websocket_connect(f"/api/streaming/v2/ws?api_key={key}") as socket:
            socket.send_json({"operation": "ping"})
            assert socket.receive_json() == {"status": "pong"}
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect("/api/streaming/v2/ws") as socket,
        ):
            socket.receive_json()


def test_keys_are_in_no_log_and_no_answer(
    demo_lake: Path, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    known = [add_key(keys, f"{n}", 1000) for n in range(3)]
    unknown = [f"tl_00000000_{n:040}" for n in range(3)]
    seen: list[str] = []
    with (
        caplog.at_level(logging.DEBUG),
        serving(
            demo_lake, Clock(), access={"keys_file": str(keys)}, log={"requests": True}
        ) as client,
    ):
        for key in (*known, *unknown):
            for path in (INFO, "/api/v3/nothing", "/api/v3/blocks?limit=x", "/metrics"):
                by_header = client.get(path, headers={"X-API-Key": key})
                by_query = client.get(path, params={"api_key": key}, follow_redirects=False)
                seen += [answer.text + str(answer.headers) for answer in (by_header, by_query)]
    seen += [str(vars(one)) for one in caplog.records if one.name.startswith("tonlake")]
    text = "\n".join(seen)
    assert "tonlake.requests" in text
    assert not [key for key in (*known, *unknown) if key.split("_", 2)[2] in text]


def test_chosen_origins_alone_are_answered(demo_lake: Path) -> None:
    ours, other = "https://a.example", "https://b.example"
    with serving(demo_lake, Clock(), http={"cors_origins": f"{ours}, https://c.example"}) as client:
        for _ in range(2):
            shown = client.get(INFO, headers={"Origin": ours}).headers
            assert shown["access-control-allow-origin"] == ours
            hidden = client.get(INFO, headers={"Origin": other}).headers
            assert "access-control-allow-origin" not in hidden
    with serving(demo_lake, Clock(), http={"cors_origins": ""}) as client:
        assert (
            "access-control-allow-origin" not in client.get(INFO, headers={"Origin": ours}).headers
        )


FORWARDING = [
    {"X-Forwarded-For": "192.0.2.7"},
    {"Forwarded": "for=192.0.2.7"},
    {"X-Real-IP": "192.0.2.7"},
    {"Via": "1.1 proxy"},
    {"X-Forwarded-Host": "api.example.org"},
    {"X-Forwarded-Proto": "https"},
    {"CF-Connecting-IP": "192.0.2.7"},
]


def forward(peer: str, text: str, trusted: str) -> tuple[str, bool]:
    """Return the client that the application sees, and whether it is seen as forwarded."""
    found: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        found.append((scope["client"][0], FORWARDED in scope.get("state", {})))

    headers = [(b"x-forwarded-for", text.encode())] if text else []
    client = (peer, 1000)
    scope: Any = {"type": "http", "path": "/healthz", "client": client, "headers": headers}
    layer = Gate(app, AccessRules(AccessSettings(), "::1"), trusted=read_networks(trusted))
    asyncio.run(layer(scope, None, None))  # type: ignore[arg-type]
    return found[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("peer", "text", "trusted", "client"),
    [
        ("127.0.0.1", "192.0.2.7", "127.0.0.1,::1", "192.0.2.7"),
        ("127.0.0.1", "6.6.6.6, 192.0.2.7", "127.0.0.1", "192.0.2.7"),
        ("127.0.0.1", "192.0.2.7, 10.1.2.3", "127.0.0.1, 10.0.0.0/8", "192.0.2.7"),
        ("127.0.0.1", "192.0.2.7", "", "127.0.0.1"),
        ("198.51.100.1", "192.0.2.7", "127.0.0.1", "198.51.100.1"),
        ("198.51.100.1", "192.0.2.7", "*", "192.0.2.7"),
    ],
)
def test_the_client_is_whom_a_trusted_proxy_names(
    peer: str, text: str, trusted: str, client: str
) -> None:
    assert forward(peer, text, trusted) == (client, True)
    assert forward(peer, "", trusted) == (peer, False)


def test_what_is_no_network_is_refused(demo_lake: Path) -> None:
    with pytest.raises(SettingsError, match="trusted_proxies"):
        create_app(demo_lake, compose(access={"trusted_proxies": "127.0.0.1, proxy"}))


@pytest.mark.parametrize("trusted", ["127.0.0.1", ""])
@pytest.mark.parametrize("headers", FORWARDING)
def test_nothing_forwarded_is_local(demo_lake: Path, headers: dict[str, str], trusted: str) -> None:
    settings = compose(access={"trusted_proxies": trusted, "anonymous_rps": 2})
    app: Any = create_app(demo_lake, settings, clock=lambda: 0.0)
    with TestClient(app) as client:
        assert [client.get("/metrics").status_code for _ in range(5)] == [200] * 5
        found = [client.get("/metrics", headers=headers).status_code for _ in range(5)]
        assert found == [401, 401, 429, 429, 429]


@pytest.mark.parametrize("rps", [1, 10, 25, 100])
def test_a_minute_admits_what_it_should(rps: int) -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    admitted = 0
    for tick in range(60 * 400):
        clock.now_s = tick / 400
        admitted += buckets.take("a", rps) == 0.0
    assert abs(admitted / (60 * rps) - 1) <= 0.02


@given(st.integers(1, 100), st.lists(st.floats(0, 3), max_size=80))
def test_any_span_admits_no_more_than_rate_and_burst(rps: int, pauses: list[float]) -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    times = []
    for pause_s in pauses:
        clock.now_s += pause_s
        wait_s = buckets.take("a", rps)
        assert wait_s >= 0
        if wait_s == 0:
            times.append(clock.now_s)
    for start in range(len(times)):
        for end in range(start, len(times)):
            assert end - start + 1 <= rps * (times[end] - times[start]) + rps + 1e-6


@given(st.integers(1, 100))
def test_a_client_that_waits_for_retry_after_is_admitted(rps: int) -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    while (wait_s := buckets.take("a", rps)) == 0:
        pass
    assert buckets.take("b", rps) == 0
    clock.now_s += wait_s + 1e-9
    assert buckets.take("a", rps) == 0
    assert buckets.take("a", rps) > 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    assert buckets.take("a", 1) == 0
    clock.now_s = -1000
    assert buckets.take("a", 1) == 1


def test_askers_are_bounded() -> None:
    buckets = TokenBuckets(Clock(), most=3)
    for asker in "abcd":
        assert buckets.take(asker, 1) == 0
    assert buckets.take("d", 1) > 0
    assert buckets.take("a", 1) == 0  # forgotten, so its bucket is full
    assert len(buckets._buckets) == 3
