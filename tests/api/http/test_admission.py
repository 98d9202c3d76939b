"""Admission: threads and their queue, what needs none, limits of streams, event loop delay."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.clock import Clock
from tests.patience import compose
from tonlake.api.app import create_app
from tonlake.api.errors import LakeUnavailable, ServiceBusy, ShareExceeded
from tonlake.api.http import admission
from tonlake.api.http.gate import REFUSAL
from tonlake.api.v3.page import transaction_page

INFO = "/api/v3/masterchainInfo"
WAIT_S = 2.0

KINDS = ["http", "websocket"]


class Streams:
    """An application that keeps every stream open until the test ends it."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.refusals: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        del receive, send
        self.refusals.append(type(scope["state"].get(REFUSAL)))
        if scope["state"].get(REFUSAL) is None:
            await self.ended.wait()


def make_scope(kind: str, address: str, path: str = "/api/scan/x") -> Any:
    return {"type": kind, "path": path, "client": (address, 1), "state": {}}


async def open_all(layer: admission.Crowd, scopes: list[Any]) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(layer(scope, None, None)) for scope in scopes]  # type: ignore[arg-type]
    await asyncio.sleep(0.01)
    return tasks


@pytest.mark.parametrize("kind", KINDS)
async def test_streams_are_bounded(kind: str) -> None:
    app = Streams()
    layer = admission.Crowd(app, most=4)
    tasks = await open_all(layer, [make_scope(kind, "a") for _ in range(3)])
    assert app.refusals == [type(None), type(None), ShareExceeded]
    tasks += await open_all(layer, [make_scope(kind, name) for name in "bcd"])
    last = LakeUnavailable if kind == "websocket" else type(None)
    assert app.refusals[3:] == [type(None), type(None), last]
    tasks += await open_all(layer, [make_scope(kind, "e", "/api")])
    assert app.refusals[6:] == [type(None)]
    app.ended.set()
    await asyncio.gather(*tasks)
    await asyncio.gather(*await open_all(layer, [make_scope(kind, "a")]))
    assert app.refusals[7:] == [type(None)]


@pytest.mark.parametrize("speaks", [True, False])
def test_a_websocket_speaks_in_time(monkeypatch: pytest.MonkeyPatch, speaks: bool) -> None:  # noqa: FBT001
    monkeypatch.setattr(admission, "FIRST_MESSAGE_S", 0.1)
    sent: list[Any] = []
    received: list[str] = []
    messages = [{"type": "websocket.connect"}]
    messages += [{"type": "websocket.receive"}] * speaks

    async def receive() -> Any:
        if not messages:
            await asyncio.sleep(0.3)
            return {"type": "websocket.disconnect"}
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        while not received or "disconnect" not in received[-1]:
            received.append((await receive())["type"])

    asyncio.run(admission.Crowd(app, most=4)(make_scope("websocket", "a"), receive, send))
    assert received[-1] == "websocket.disconnect"
    assert [message["type"] for message in sent] == ["websocket.close"] * (not speaks)


class Loop:
    """Runs the scheduled calls when the test asks for them."""

    now_s = 100.0

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.cancelled = 0

    def __call__(self) -> float:
        return self.now_s

    def call_later(self, _after_s: float, call: Callable[..., None], *given: Any) -> "Loop":
        self.waiting.append(lambda: call(*given))
        return self

    def cancel(self) -> None:
        self.cancelled += 1

    def turn(self, after_s: float) -> None:
        self.now_s += after_s
        self.waiting.pop()()


def test_a_loop_that_falls_behind_is_seen_at_once_and_until_it_is_back() -> None:
    loop: Any = Loop()
    pulse = admission.Pulse(loop)
    assert pulse.measure_s() == 0
    pulse.start(loop)
    loop.turn(admission.EVERY_S)
    assert pulse.measure_s() == pytest.approx(0)
    loop.now_s += admission.EVERY_S + 3
    assert pulse.measure_s() == pytest.approx(3)  # the beat is overdue
    loop.turn(1)
    assert pulse.measure_s() == pytest.approx(4)  # it was late, and the next one is not yet due
    loop.turn(admission.EVERY_S)
    assert pulse.measure_s() == pytest.approx(0)
    loop.now_s += 5
    pulse.stop()
    assert loop.cancelled == 1
    loop.now_s += 5
    assert pulse.measure_s() == 0  # there is no beat, so nothing is late
    admission.Pulse().stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> Iterator[admission.ThreadQueue]:
    queue = admission.ThreadQueue("one", 1, WAIT_S, clock)
    yield queue
    queue.close()


def test_who_waits_too_long_is_refused_and_so_is_who_comes_behind(
    queue: admission.ThreadQueue, clock: Clock
) -> None:
    entered, leave = threading.Event(), threading.Event()

    def occupy() -> None:
        entered.set()
        leave.wait()

    first = queue.submit(occupy)
    entered.wait()
    early = queue.submit(lambda: "early")
    clock.now_s = WAIT_S / 2
    late = queue.submit(lambda: "late")
    clock.now_s += 0.001
    with pytest.raises(ServiceBusy):
        queue.submit(lambda: "refused at once")
    clock.now_s = WAIT_S + 0.0001
    leave.set()
    with pytest.raises(ServiceBusy):
        early.result()
    assert (first.result(), late.result()) == (None, "late")
    assert queue.submit(lambda: "again").result() == "again"


@pytest.mark.parametrize(("in_flight", "lag_s", "is_refused"), [(1, 9, False), (2, 9, True)])
async def test_a_loop_that_is_late_admits_no_more_than_a_few(
    queue: admission.ThreadQueue,
    in_flight: int,
    lag_s: float,
    is_refused: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    refusals: list[bool] = []

    ended = asyncio.Event()

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        refusals.append(REFUSAL in scope["state"])
        await ended.wait()

    loop: Any = Loop()
    pulse = admission.Pulse(loop)
    queues = admission.Queues(queue, queue, queue)
    layer = admission.Admission(app, queues, pulse, most=9, calm=2, wait_s=WAIT_S)
    scopes = [
        {"type": "http", "method": "GET", "path": "/x", "query_string": b"", "state": {}}
        for _ in range(in_flight + 1)
    ]
    tasks = [asyncio.create_task(layer(one, None, None)) for one in scopes[1:]]  # type: ignore[arg-type]
    await asyncio.sleep(0.01)
    pulse.start(loop)
    loop.now_s += admission.EVERY_S + lag_s
    tasks.append(asyncio.create_task(layer(scopes[0], None, None)))  # type: ignore[arg-type]
    await asyncio.sleep(0.01)
    ended.set()
    await asyncio.gather(*tasks)
    assert refusals == [*[False] * in_flight, is_refused]


@pytest.mark.parametrize(
    ("query", "small"),
    [
        (b"", True),
        (b"account=0:ab&limit=99", True),
        (b"account=0:ab&limit=100", False),
        (b"count=1000", False),
        (b"limit=9&offset=999", True),
        (b"limit=9&offset=1000", False),
        (b"account=%b&limit=1" % (b"0:ab," * 100), False),
    ],
)
def test_a_small_request_is_short_and_asks_for_few_rows(query: bytes, small: bool) -> None:  # noqa: FBT001
    scope: Any = {"query_string": query}
    assert admission.is_small(scope) is small


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that grows by each try to answer in the event loop: whether that was done."""
    done: list[bool] = []
    real = admission.call_at_once

    def note(work: Any, state: Any) -> Any:
        done.append(False)
        answer = real(work, state)
        done[-1] = answer is not None
        return answer

    monkeypatch.setattr(admission, "call_at_once", note)
    return done


def test_small_answers_of_the_index_take_no_thread(demo_lake: Path, at_once: list[bool]) -> None:
    app = create_app(demo_lake, compose(http={"cache_mib": 0}))
    with TestClient(app) as client:
        assert client.get(INFO).status_code == 200  # opens the snapshot, in a thread
        for path in (INFO, "/api/v2/getMasterchainInfo", "/api/v3/blocks?limit=100"):
            assert client.get(path).status_code == 200
        app.state.holder.close()
        assert client.get(INFO).status_code == 200
    assert at_once == [False, True, True, False]


@pytest.mark.parametrize("path", ["/api/v3/transactions?sort=asc&workchain=0&limit=3&odd=1"])
def test_what_takes_a_query_goes_to_a_thread(
    demo_lake: Path, at_once: list[bool], path: str
) -> None:
    with TestClient(create_app(demo_lake, compose(http={"cache_mib": 0}))) as client:
        first, second = client.get(path), client.get(path)
    assert at_once == [False, False]
    assert second.json() == first.json()
    assert second.headers["x-tonlake-warning"] == first.headers["x-tonlake-warning"]


def test_many_transactions_are_written_in_a_thread(
    demo_lake: Path, at_once: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_page, "MAX_AT_ONCE", 2)
    with TestClient(create_app(demo_lake, compose(http={"cache_mib": 0}))) as client:
        answers = [client.get("/api/v3/transactions?limit=3").json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert at_once == [False, False]


def test_requests_are_answered_by_the_threads_of_their_queue(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    real = admission.ThreadQueue._begin

    def note(queue: admission.ThreadQueue, number: int, work: Callable[[], Any]) -> Any:
        names.append(threading.current_thread().name.rpartition("_")[0])
        return real(queue, number, work)

    monkeypatch.setattr(admission.ThreadQueue, "_begin", note)
    with TestClient(create_app(demo_lake, compose(http={"cache_mib": 0}))) as client:
        client.get("/api/v3/blocks?limit=100")
        client.get("/api/v3/transactions?sort=asc&workchain=0&limit=3")
        client.post("/api/v2/jsonRPC", json={"method": "getMasterchainInfo", "params": {}})
        client.get("/readyz")
    assert names == ["large", "small", "waiting"]
