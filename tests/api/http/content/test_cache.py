"""Cached responses: equal to the first, of the right snapshot, within their size limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from litestar.testing import TestClient

import tonlake.api.v3.route.block
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.http.content.cache import OVERHEAD_BYTES, SMALL_PART, CachedResponse, ResponseCache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INFO = "/api/v3/masterchainInfo"
OF_MOMENT = {"server-timing", "content-length"}


@pytest.fixture
def fresh(demo_lake: Path) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(demo_lake, PATIENT)) as client:
        yield client


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
def test_an_answer_sent_again_is_the_same(fresh: TestClient[Any], path: str) -> None:
    for headers in ({}, {"Origin": "https://a.example"}, {"X-No-Address-Book": "true"}):
        first, again = (fresh.get(path, headers=headers) for _ in range(2))
        assert _headers(first) == _headers(again)
        assert again.headers["server-timing"].startswith("app;dur=")
        bodies = [{**answer.json(), "@extra": None} for answer in (first, again)]
        assert bodies[0] == bodies[1]
        head = fresh.head(path, headers=headers)
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


def test_headers_and_cookies_separate_answers(fresh: TestClient[Any]) -> None:
    path = "/api/v3/transactions?limit=1"
    assert fresh.get(path).json()["address_book"]
    assert not fresh.get(path, headers={"X-No-Address-Book": "1"}).json()["address_book"]
    assert fresh.get(path).json()["address_book"]
    for origin in ("https://a.example", "https://b.example"):
        answer = fresh.get(path, headers={"Origin": origin})
        assert answer.headers["access-control-allow-origin"] == "*"
        answer = fresh.get(path, headers={"Origin": origin, "Cookie": "x=1"})
        assert answer.headers["access-control-allow-origin"] == origin
    assert "access-control-allow-origin" not in fresh.get(path).headers


def test_the_time_of_version_2_is_of_the_moment(fresh: TestClient[Any]) -> None:
    texts = [fresh.get("/api/v2/getMasterchainInfo").json()["@extra"] for _ in range(10)]
    assert len(set(texts)) > 1  # to a microsecond, which some of them share
    for text in texts:
        seconds, worker, elapsed_ms = text.split(":")
        assert (seconds.isdigit(), worker, float(elapsed_ms) >= 0) == (True, "_", True)


def test_the_time_of_day_is_not_kept(
    fresh: TestClient[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for now_s in (1.0, 2.0):
        monkeypatch.setattr("tonlake.api.v2.method.block.time.time", lambda now_s=now_s: now_s)
        answer = fresh.get("/api/v2/getConsensusBlock").json()
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
    old, new = CachedResponse([], b"old", None), CachedResponse([], b"new", None)
    cache.put(1, key, old)
    assert cache.get(1, key) is old
    assert cache.get(2, key) is None
    assert cache.get(None, key) is None
    cache.put(2, key, new)
    assert cache.get(2, key) is new
    assert cache.get(1, key) is None
    cache.put(1, ("/late", b"", ()), old)
    assert cache.get(2, ("/late", b"", ())) is None


def test_the_answers_used_last_stay_within_the_bound() -> None:
    most = 40 * OVERHEAD_BYTES
    cache = ResponseCache(most)
    answer = CachedResponse([(b"a", b"b")], bytes(1000), bytes(20))
    keys = [("/x", str(number).encode(), ()) for number in range(100)]
    for key in keys:
        cache.put(1, key, answer)
        assert cache.get(1, keys[0]) is answer
    kept = [key for key in keys if cache.get(1, key)]
    assert kept == [keys[0], *keys[-len(kept) + 1 :]]
    assert 10 < len(kept) <= most // answer.size
    cache.put(1, keys[0], CachedResponse([], bytes(most // SMALL_PART), None))
    assert cache.get(1, keys[0]) is answer
    nothing = ResponseCache(0)
    nothing.put(1, keys[0], answer)
    assert nothing.get(1, keys[0]) is None


def test_without_a_lake_nothing_is_kept(tmp_path: Path) -> None:
    with TestClient(create_app(tmp_path / "none", PATIENT)) as client:
        for _ in range(2):
            assert client.get(INFO).status_code == 503
