"""Cached and compressed responses, ETags and lifetimes as clients see them."""

import asyncio
import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar.testing import TestClient

import tonlake.api.http.representation
import tonlake.api.v3.route.block
from tests.api.growth import Growth, Served, serve
from tests.api.http.test_coding import unpack
from tests.patience import PATIENT, patient
from tonlake.api.access import add_key
from tonlake.api.app import create_app
from tonlake.api.http.representation import (
    MIN_BYTES,
    OVERHEAD_BYTES,
    SMALL_PART,
    CachedResponse,
    Representations,
    ResponseCache,
    choose_coding,
    pack,
)

INFO = "/api/v3/masterchainInfo"
OF_MOMENT = {"server-timing"}
LIST = "/api/v3/transactions?limit=20"
OLD = "/api/v2/getConfigAll?seqno=100"
PLAIN = {"Accept-Encoding": "identity"}


def _ask(demo_lake: Path) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(demo_lake, PATIENT)) as client:
        client.headers.pop("accept-encoding")
        yield client


client = pytest.fixture(_ask, scope="module")
fresh = pytest.fixture(_ask)
"""The same for tests that count what is made."""


@pytest.fixture(scope="module")
def served(demo_lake: Path) -> Iterator[Served]:
    with serve(demo_lake) as served:
        yield served


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the coding of each body that is compressed."""
    done: list[str] = []

    def count(coding: str, body: bytes) -> bytes:
        done.append(coding)
        return pack(coding, body)

    monkeypatch.setattr(tonlake.api.http.representation, "pack", count)
    return done


def read_raw(url: str, **headers: str) -> tuple[httpx.Headers, bytes]:
    """Return the head of an answer, and its body as it came over the wire."""
    with httpx.stream("GET", url, headers=headers) as answer:
        return answer.headers, b"".join(answer.iter_raw())


@pytest.mark.parametrize("path", [LIST, OLD, "/", "/openapi.json", "/explorer/explorer.css"])
def test_a_body_is_the_same_in_every_coding(served: Served, path: str) -> None:
    plain_head, plain = read_raw(served.url + path, **PLAIN)
    assert "content-encoding" not in plain_head
    for coding in ("gzip", "zstd"):
        for _ in range(3):  # made, kept, and sent again
            head, body = read_raw(served.url + path, **{"Accept-Encoding": coding})
            assert head["content-encoding"] == coding
            assert "accept-encoding" in head["vary"].lower()
            assert int(head["content-length"]) == len(body) < len(plain)
            assert head.get("etag") == plain_head.get("etag")
            found = unpack(coding, body)
            assert found.partition(b'"@extra"')[0] == plain.partition(b'"@extra"')[0]
            assert len(found) == pytest.approx(len(plain), abs=4)  # digits of a time
    assert httpx.get(served.url + path).content[:1000] == plain[:1000]


def test_what_is_kept_is_compressed_once(fresh: TestClient[Any], packed: list[str]) -> None:
    for path in (LIST, "/api/v2/shards?seqno=100", OLD):
        packed.clear()
        bodies = [fresh.get(path, headers={"Accept-Encoding": "gzip"}) for _ in range(3)]
        fresh.get(path)
        big = len(bodies[0].content) > MIN_BYTES
        assert packed == ["gzip"] * big
        fresh.get(path, headers={"Accept-Encoding": "zstd"})
        assert packed == ["gzip", "zstd"] * big


def test_files_are_compressed_once(fresh: TestClient[Any], packed: list[str]) -> None:
    for _ in range(3):
        answer = fresh.get("/docs/swagger-ui.css", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
    assert packed == ["gzip"]


def test_small_bodies_and_packed_formats_go_as_they_are(client: TestClient[Any]) -> None:
    answer = client.get("/healthz", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers
    answer = client.get("/healthz", headers={"Accept-Encoding": "gzip, identity;q=0"})
    assert answer.headers["content-encoding"] == "gzip"
    parquet = {"Accept": "application/vnd.apache.parquet", "Accept-Encoding": "gzip"}
    answer = client.get(LIST, headers=parquet)
    assert "content-encoding" not in answer.headers
    assert answer.content[:4] == b"PAR1"
    csv = client.get(LIST, headers={"Accept": "text/csv", "Accept-Encoding": "gzip"})
    assert csv.headers["content-encoding"] == "gzip"


def test_head_has_the_head_of_get(client: TestClient[Any]) -> None:
    for _ in range(2):
        head = client.head(LIST, headers={"Accept-Encoding": "gzip"})
        got = client.get(LIST, headers={"Accept-Encoding": "gzip"})
        assert (head.content, head.headers["content-encoding"]) == (b"", "gzip")
        assert head.headers.get("content-length") in (None, got.headers["content-length"])
        assert head.headers["etag"] == got.headers["etag"]


@pytest.mark.parametrize("path", [LIST, OLD, "/", "/account/-1:" + "33" * 32])
def test_a_tag_that_still_holds_is_304(client: TestClient[Any], path: str) -> None:
    first = client.get(path)
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    for condition in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        for method in ("GET", "HEAD"):
            headers = {"If-None-Match": condition, "Accept-Encoding": "gzip"}
            again = client.request(method, path, headers=headers)
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == tag
            assert again.headers["cache-control"] == first.headers["cache-control"]
            assert again.headers["vary"] == first.headers["vary"]
            assert not {"content-type", "content-encoding"} & set(again.headers)
    for condition in ('"other"', "", tag[:-2], tag.replace('"', "")):
        assert client.get(path, headers={"If-None-Match": condition}).status_code == 200


def test_tags_differ_by_request_and_form(client: TestClient[Any]) -> None:
    ways: list[tuple[str, dict[str, str]]] = [
        *((LIST, {}), (LIST + "&offset=1", {}), ("/api/v3/blocks?limit=20", {})),
        *((LIST, {"Accept": "text/csv"}), (LIST, {"X-No-Address-Book": "1"})),
    ]
    tags = [client.get(path, headers=headers).headers["etag"] for path, headers in ways]
    assert len(set(tags)) == len(ways)
    assert client.get(LIST, headers={"Accept": "*/*", "X-Other": "1"}).headers["etag"] == tags[0]


def test_a_commit_changes_the_tags_of_the_tip_alone(growth: Growth) -> None:
    growth.show(2)
    tip, pinned = LIST, LIST + "&snapshot=2"
    with TestClient(create_app(growth.lake_dir, PATIENT)) as client:
        before = [client.get(path).headers["etag"] for path in (tip, pinned)]
        assert before[0] != before[1]
        growth.show(1)
        while client.get(tip).headers["x-tonlake-snapshot"].startswith("2:"):
            pass
        after = [client.get(path).headers["etag"] for path in (tip, pinned)]
        assert (before[0] != after[0], before[1] == after[1]) == (True, True)
        stale = client.get(tip, headers={"If-None-Match": before[0]})
        assert stale.status_code == 200


def test_an_answer_says_how_long_it_holds(demo_lake: Path, tmp_path: Path) -> None:
    pinned = LIST + "&snapshot=1"
    with TestClient(create_app(demo_lake, PATIENT)) as client:
        assert client.get(LIST).headers["cache-control"] == "public, no-cache"
        answer = client.get(pinned)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        for name in ("Accept", "Accept-Encoding", "Origin", "X-No-Address-Book"):
            assert name in answer.headers["vary"].split(", ")
        for path in (LIST + "&snapshot=99", "/api/v3/nothing", "/api/v2/getConsensusBlock"):
            answer = client.get(path)
            assert answer.headers["cache-control"] == "no-store", path
            assert "etag" not in answer.headers
    keys = tmp_path / "keys.json"
    keyed = patient(access={"keys_file": str(keys), "keys_required": True})
    with TestClient(create_app(demo_lake, keyed)) as client:
        key = add_key(keys, "mine", 10)
        refused = client.get(pinned, headers={"If-None-Match": "*"})
        assert (refused.status_code, refused.headers["cache-control"]) == (401, "no-store")
        while (answer := client.get(pinned, headers={"X-API-Key": key})).status_code == 401:
            pass
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"


def test_the_next_page_of_a_list_is_pinned(client: TestClient[Any]) -> None:
    cursor = client.get(LIST).headers["x-tonlake-cursor"]
    assert "immutable" in client.get(f"{LIST}&cursor={cursor}").headers["cache-control"]


def test_settings_of_answers_change_tags(demo_lake: Path) -> None:
    tags = set()
    for settings in (PATIENT, patient(http={"opcode_format": "integer"})):
        with TestClient(create_app(demo_lake, settings)) as client:
            tags.add(client.get(LIST).headers["etag"])
    assert len(tags) == 2


def test_kept_bodies_are_counted_in_the_bound(demo_lake: Path) -> None:
    app = create_app(demo_lake, PATIENT)
    with TestClient(app) as client:
        metric = "tonlake_answer_cache_bytes"

        def read_bytes() -> float:
            lines = client.get("/metrics").text.splitlines()
            return float(next(line for line in lines if line.startswith(metric)).split()[1])

        client.get(LIST, headers=PLAIN)
        before = read_bytes()
        size = int(client.get(LIST, headers={"Accept-Encoding": "gzip"}).headers["content-length"])
        assert read_bytes() - before == pytest.approx(size, abs=20)


def test_no_more_is_compressed_at_a_time_than_is_allowed() -> None:
    body = b"x" * 100_000
    head = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]

    async def answer(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    layer = Representations(
        answer,
        ResponseCache(0),
        lambda: 1,
        any_origin=True,
        max_bytes=150_000,
    )

    async def ask(path: str) -> bytes | None:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        accepted = [(b"accept-encoding", b"gzip")]
        scope = {"type": "http", "method": "GET", "path": path, "headers": accepted, "state": {}}
        await layer(scope, None, send)  # type: ignore[arg-type]
        assert b"".join(message.get("body", b"") for message in sent) == body or len(sent) == 2
        return dict(sent[0]["headers"]).get(b"content-encoding")

    async def ask_all(*paths: str) -> list[bytes | None]:
        return await asyncio.gather(*map(ask, paths))

    assert asyncio.run(ask_all("/a", "/b")) == [b"gzip", None]
    assert asyncio.run(ask_all("/a")) == [b"gzip"]
    assert asyncio.run(ask_all("/api/scan/a")) == [None]


def _headers(answer: Any) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in OF_MOMENT}


def _count_blocks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows by each block that is written."""
    written: list[object] = []
    real = tonlake.api.v3.route.block.render_block

    def count(row: dict[str, Any]) -> object:
        written.append(row)
        return real(row)

    monkeypatch.setattr(tonlake.api.v3.route.block, "render_block", count)
    return written


@pytest.mark.parametrize(
    "path",
    [
        INFO,
        "/api/v3/blocks?limit=3&odd=1",
        "/api/v3/transactions?limit=5&x_no_address_book=1",
        "/api/v3/blocks?limit=1&snapshot=1",
        "/api/v2/getMasterchainInfo",
        "/api/v2/shards?seqno=100&limit=1",
    ],
)
def test_an_answer_sent_again_is_the_same(client: TestClient[Any], path: str) -> None:
    for headers in ({}, {"Origin": "https://a.example"}, {"X-No-Address-Book": "true"}):
        first, again = (client.get(path, headers=headers) for _ in range(2))
        assert _headers(first) == _headers(again)
        assert again.headers["server-timing"].startswith("app;dur=")
        assert first.content == again.content  # with the time in "@extra", as the public service
        head = client.head(path, headers=headers)
        assert (head.status_code, head.content) == (200, b"")
        assert _headers(head) == _headers(first)


def test_an_answer_is_made_once(fresh: TestClient[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    written = _count_blocks(monkeypatch)
    path = "/api/v3/blocks?limit=2"
    answers = [fresh.get(path, headers={"Accept-Encoding": "identity"}) for _ in range(3)]
    assert len({answer.content for answer in answers}) == 1
    assert int(answers[2].headers["content-length"]) == len(answers[2].content)
    assert len(written) == 2
    fresh.get(path + "&x_timeout=2000")
    assert len(written) == 4


def test_headers_and_cookies_separate_answers(client: TestClient[Any]) -> None:
    path = "/api/v3/transactions?limit=1"
    assert client.get(path).json()["address_book"]
    assert not client.get(path, headers={"X-No-Address-Book": "1"}).json()["address_book"]
    assert client.get(path).json()["address_book"]
    for origin in ("https://a.example", "https://b.example"):
        answer = client.get(path, headers={"Origin": origin})
        assert answer.headers["access-control-allow-origin"] == "*"
        answer = client.get(path, headers={"Origin": origin, "Cookie": "x=1"})
        assert answer.headers["access-control-allow-origin"] == origin
    assert "access-control-allow-origin" not in client.get(path).headers


def test_repeated_accept_headers_are_one_list(served: Served) -> None:
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"))
    for accepted in (["*/*", "text/csv"], ["text/csv"]):
        connection.putrequest("GET", LIST)
        for value in accepted:
            connection.putheader("Accept", value)
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.getheader("content-type") == "text/csv; charset=utf-8"
        assert answer.read().startswith(b"account,")
    connection.close()


def test_the_time_of_day_is_not_kept(
    client: TestClient[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for now_s in (1.0, 2.0):
        monkeypatch.setattr("tonlake.api.v2.block.time.time", lambda now_s=now_s: now_s)
        answer = client.get("/api/v2/getConsensusBlock").json()
        assert answer["result"]["timestamp"] == now_s


def test_errors_are_not_kept(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_row: object) -> None:
        raise MemoryError

    app = create_app(demo_lake, PATIENT)
    with TestClient(app, raise_server_exceptions=False) as client:
        with monkeypatch.context() as broken:
            broken.setattr(tonlake.api.v3.route.block, "render_block", fail)
            assert client.get(INFO).status_code == 500
        assert client.get(INFO).status_code == 200


def test_a_commit_lets_go_of_all_answers() -> None:
    cache = ResponseCache(1 << 20)
    key = ("/x", b"", ())
    old, new = CachedResponse([], b"old", key), CachedResponse([], b"new", key)
    cache.put(1, old)
    assert cache.get(1, key) is old
    assert cache.get(2, key) is None
    assert cache.get(None, key) is None
    cache.put(2, new)
    assert cache.get(2, key) is new
    assert cache.get(1, key) is None
    late = ("/late", b"", ())
    cache.put(1, CachedResponse([], b"old", late))
    assert cache.get(2, late) is None


def test_the_answers_used_last_stay_within_the_bound() -> None:
    most = 40 * OVERHEAD_BYTES
    cache = ResponseCache(most)
    answers = [
        CachedResponse([(b"a", b"b")], bytes(1000), ("/x", str(number).encode(), ()))
        for number in range(100)
    ]
    for answer in answers:
        cache.put(1, answer)
        assert cache.get(1, answers[0].key) is answers[0]
    kept = [answer for answer in answers if cache.get(1, answer.key)]
    assert kept == [answers[0], *answers[-len(kept) + 1 :]]
    assert 10 < len(kept) <= most // answers[0].size
    cache.put(1, CachedResponse([], bytes(most // SMALL_PART), answers[0].key))
    assert cache.get(1, answers[0].key) is answers[0]
    nothing = ResponseCache(0)
    nothing.put(1, answers[0])
    assert nothing.get(1, answers[0].key) is None


def test_long_headers_are_counted_or_not_kept(client: TestClient[Any]) -> None:
    assert CachedResponse([], b"", ("/x", b"", ((b"origin", bytes(5000)),))).size > 5000
    before = choose_coding.cache_info()
    answer = client.get(LIST, headers={"Accept-Encoding": "x" * 5000 + ", gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert choose_coding.cache_info() == before


def test_without_a_lake_nothing_is_kept(tmp_path: Path) -> None:
    with TestClient(create_app(tmp_path / "none", PATIENT)) as client:
        for _ in range(2):
            assert client.get(INFO).status_code == 503
