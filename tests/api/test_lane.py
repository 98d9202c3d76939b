"""Lanes of threads: what is quick does not wait for what is not, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

from api.errors import ServiceBusy
from api.lane import HEAVY_S, SHAPES_KEPT, Lane, Lanes, read_shape
from lake.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litestar.types import HTTPScope

WAIT_S = 2.0


class Clock:
    """Seconds that pass when a test says so."""

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
    lanes = Lanes(Settings(request_threads=1, request_wait_ms=int(WAIT_S * 1000)), clock)
    yield lanes
    lanes.shutdown()


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
    quick = lanes.choose(page)
    assert lanes.choose(search) is quick  # nothing is known of it yet
    shape = read_shape(search)
    lanes.note_cost(shape, 10 * HEAVY_S)
    heavy = lanes.choose(_ask("/api/v3/blocks", b"workchain=-1&limit=4"))
    assert heavy is not quick
    assert lanes.choose(page) is quick
    requests = 1
    while lanes.choose(search) is heavy:
        lanes.note_cost(shape, 0.0)
        requests += 1
    assert 5 < requests < 20
    assert lanes.choose(_ask("/api/v2/jsonRPC", method="POST")) not in (quick, heavy)


def test_shapes_are_bounded_and_pages_share_theirs(lanes: Lanes) -> None:
    assert read_shape(_ask("/account/0:ab")) == read_shape(_ask("/account/0:cd"))
    assert read_shape(_ask("/")) != read_shape(_ask("/account/0:cd")) == ("/account/", ())
    assert read_shape(_ask("/x", b"a=1&b&c=")) == ("/x", (b"a", b"b", b"c"))
    heavy = _ask("/api/v3/heavy")
    quick = lanes.choose(heavy)
    lanes.note_cost(read_shape(heavy), 1.0)
    assert lanes.choose(heavy) is not quick
    for number in range(SHAPES_KEPT):
        lanes.note_cost((str(number), ()), 0.0)
    assert lanes.choose(heavy) is quick  # forgotten with all others: their number is bounded


def test_the_threads_of_a_loop_are_those_of_the_lanes(lanes: Lanes) -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(lanes)

        async def name(scope: HTTPScope | None) -> Any:
            if scope is not None:
                lanes.enter(scope)
            return await asyncio.to_thread(lambda: threading.current_thread().name)

        heavy = _ask("/api/v3/heavy")
        lanes.note_cost(read_shape(heavy), 1.0)
        scopes = [None, _ask("/a"), heavy, _ask("/a", method="POST")]
        return [await asyncio.create_task(name(scope)) for scope in scopes]

    found = [name.rpartition("_")[0] for name in asyncio.run(work())]
    assert found == ["background", "quick", "heavy", "waiting"]


def test_the_cost_of_what_fails_is_known_too(lanes: Lanes) -> None:
    scope = _ask("/api/v3/broken")

    def fail() -> None:
        raise ValueError(sum(range(1000)))

    def choose_and_submit() -> None:
        lanes.enter(scope)
        with pytest.raises(ValueError, match="499500"):
            lanes.submit(fail).result()

    copy_context().run(choose_and_submit)
    assert read_shape(scope) in lanes._costs_s
