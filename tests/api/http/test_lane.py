"""Lanes of threads: quick requests do not wait for slow ones, and nothing waits forever."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from tonlake.api.errors import ServiceBusy
from tonlake.api.http.lane import (
    AT_ONCE_S,
    HEAVY_S,
    SHAPES_KEPT,
    TURN,
    Lane,
    Lanes,
    call_in_lane,
    read_shape,
)
from tonlake.queries.errors import QueryNeeded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litestar.types import HTTPScope

WAIT_S = 2.0


class Clock:
    """A manual clock."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def _ask(path: str, query: bytes = b"", method: str = "GET") -> HTTPScope:
    return {"path": path, "query_string": query, "method": method}  # type: ignore[typeddict-item]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lane(clock: Clock) -> Iterator[Lane]:
    lane = Lane("one", 1, WAIT_S, clock)
    yield lane
    lane.close()


@pytest.fixture
def lanes(clock: Clock) -> Iterator[Lanes]:
    lanes = Lanes(threads=1, wait_s=WAIT_S, clock=clock)
    yield lanes
    lanes.close()


def test_who_waits_too_long_is_refused_and_the_next_is_not(lane: Lane, clock: Clock) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait()

    held = lane.submit(hold)
    entered.wait()
    assert not lane.is_late()
    early = lane.submit(lambda: "early")
    clock.now_s = WAIT_S / 2
    assert not lane.is_late()
    assert lane.is_late(waited_s=WAIT_S)  # elsewhere, before they come here
    clock.now_s += 0.001
    assert lane.is_late()
    late = lane.submit(lambda: "late")
    clock.now_s = WAIT_S + 0.0001
    leave.set()
    with pytest.raises(ServiceBusy):
        early.result()
    assert (held.result(), late.result()) == (None, "late")
    assert not lane.is_late()
    assert lane.submit(lambda: "again").result() == "again"


def test_requests_are_sorted_by_what_such_ones_have_cost(lanes: Lanes) -> None:
    page, search = _ask("/api/v3/blocks"), _ask("/api/v3/blocks", b"workchain=0&limit=3")
    quick = lanes.enter(page).lane
    assert lanes.enter(search).lane is quick  # nothing is known of it yet
    shape = read_shape(search)
    lanes.note_cost(shape, 10 * HEAVY_S)
    heavy = lanes.enter(_ask("/api/v3/blocks", b"workchain=-1&limit=4")).lane
    assert heavy is not quick
    assert lanes.enter(page).lane is quick
    requests = 1
    while lanes.enter(search).lane is heavy:
        lanes.note_cost(shape, 0.0)
        requests += 1
    assert 5 < requests < 20
    assert lanes.enter(_ask("/api/v2/jsonRPC", method="POST")).lane not in (quick, heavy)


def test_shapes_are_bounded_and_pages_share_theirs(lanes: Lanes) -> None:
    assert read_shape(_ask("/account/0:ab")) == read_shape(_ask("/account/0:cd"))
    assert read_shape(_ask("/")) != read_shape(_ask("/account/0:cd")) == ("/account/", ())
    assert read_shape(_ask("/x", b"a=1&b&c=")) == ("/x", (b"a", b"b", b"c"))
    heavy = _ask("/api/v3/heavy")
    quick = lanes.enter(heavy).lane
    lanes.note_cost(read_shape(heavy), 1.0)
    assert lanes.enter(heavy).lane is not quick
    for number in range(SHAPES_KEPT):
        lanes.note_cost((str(number), ()), 0.0)
    assert lanes.enter(heavy).lane is quick  # forgotten with all others: their number is bounded


def _enter(lanes: Lanes, scope: HTTPScope) -> Any:
    return {**scope, "state": {TURN: lanes.enter(scope)}}


def test_requests_are_answered_by_the_threads_of_their_lane(lanes: Lanes) -> None:
    heavy = _ask("/api/v3/heavy")
    lanes.note_cost(read_shape(heavy), 1.0)
    scopes = [_enter(lanes, one) for one in (_ask("/a"), heavy, _ask("/a", method="POST"))]

    async def name(scope: Any) -> str:
        return await call_in_lane(lambda: threading.current_thread().name, scope)

    async def work() -> list[str]:
        return [await name(scope) for scope in (*scopes, {"state": {}})]

    *found, other = asyncio.run(work())
    assert [one.rpartition("_")[0] for one in found] == ["quick", "heavy", "waiting"]
    assert other.startswith("asyncio_")  # without a turn: a thread of the loop


def test_the_context_of_a_request_reaches_its_thread(lanes: Lanes) -> None:
    known = ContextVar("known", default="nothing")

    async def work() -> str:
        known.set("request")
        return await call_in_lane(known.get, _enter(lanes, _ask("/a")))

    assert asyncio.run(work()) == "request"


def test_the_cost_of_what_fails_is_known_too(lanes: Lanes) -> None:
    scope = _ask("/api/v3/broken")

    def fail() -> None:
        raise ValueError(sum(range(1000)))

    with pytest.raises(ValueError, match="499500"):
        asyncio.run(call_in_lane(fail, _enter(lanes, scope)))
    assert read_shape(scope) in lanes._costs_s


def test_small_requests_are_recognised_by_cost_and_parameters(
    lanes: Lanes,
) -> None:
    page = _ask("/api/v3/transactions", b"account=0:ab&limit=10")
    shape = read_shape(page)
    assert not lanes.is_small(page)  # nothing is known of it yet
    lanes.note_cost(shape, AT_ONCE_S / 2)
    assert lanes.is_small(page)
    for query in (b"account=0:ab&limit=100", b"account=%b&limit=1" % (b"0:ab," * 100)):
        many = _ask("/api/v3/transactions", query)
        assert read_shape(many) == shape
        assert not lanes.is_small(many)
    for _ in range(3):
        lanes.note_cost(shape, 10 * AT_ONCE_S)
    assert not lanes.is_small(page)


def test_what_turns_out_not_to_be_small_goes_to_threads_for_a_while(lanes: Lanes) -> None:
    page = _ask("/api/v3/transactions", b"hash=ab")
    lanes.note_cost(read_shape(page), 0.0)
    assert lanes.call_at_once(lambda: "found", read_shape(page)) == "found"

    def ask() -> None:
        raise QueryNeeded("v3/codes")

    with pytest.raises(QueryNeeded):
        lanes.call_at_once(ask, read_shape(page))
    requests = 0
    while not lanes.is_small(page):
        lanes.note_cost(read_shape(page), 0.0)
        requests += 1
    assert 1 < requests < 20


def test_many_rows_of_unknown_cost_begin_in_the_heavy_lane() -> None:
    lanes = Lanes(threads=1, wait_s=1)
    few = lanes.enter(_ask("/api/v3/traces", b"limit=20"))
    many = _ask("/api/v3/traces", b"limit=1000")
    assert lanes.enter(many).lane is not few.lane
    lanes.note_cost(few.shape, 0.001)
    assert lanes.enter(many).lane is few.lane
    lanes.close()
