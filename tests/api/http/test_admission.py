"""Limits of streams and WebSockets, and measurement of event loop delay."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tonlake.api.errors import LakeUnavailable, ShareExceeded
from tonlake.api.http import admission
from tonlake.api.http.admission import EVERY_S, Crowd, Pulse
from tonlake.api.http.gate import REFUSAL

if TYPE_CHECKING:
    from collections.abc import Callable

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


def make_scope(kind: str, address: str, path: str = "/stream/x") -> Any:
    return {"type": kind, "path": path, "client": (address, 1), "state": {}}


async def open_all(layer: Crowd, scopes: list[Any]) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(layer(scope, None, None)) for scope in scopes]  # type: ignore[arg-type]
    await asyncio.sleep(0.01)
    return tasks


@pytest.mark.parametrize("kind", KINDS)
def test_streams_are_bounded(kind: str) -> None:
    async def run() -> None:
        app = Streams()
        layer = Crowd(app, most=4, streams="/stream")
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

    asyncio.run(run())


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

    asyncio.run(Crowd(app, most=4, streams="/stream")(make_scope("websocket", "a"), receive, send))
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

    def call_later(self, _after_s: float, call: Callable[..., None], *given: Any) -> Loop:
        self.waiting.append(lambda: call(*given))
        return self

    def cancel(self) -> None:
        self.cancelled += 1

    def turn(self, after_s: float) -> None:
        self.now_s += after_s
        self.waiting.pop()()


def test_a_loop_that_falls_behind_is_seen_at_once_and_until_it_is_back() -> None:
    loop: Any = Loop()
    pulse = Pulse(loop)
    assert pulse.measure_s() == 0
    pulse.start(loop)
    loop.turn(EVERY_S)
    assert pulse.measure_s() == pytest.approx(0)
    loop.now_s += EVERY_S + 3
    assert pulse.measure_s() == pytest.approx(3)  # the beat is overdue
    loop.turn(1)
    assert pulse.measure_s() == pytest.approx(4)  # it was late, and the next one is not yet due
    loop.turn(EVERY_S)
    assert pulse.measure_s() == pytest.approx(0)
    loop.now_s += 5
    pulse.stop()
    assert loop.cancelled == 1
    loop.now_s += 5
    assert pulse.measure_s() == 0  # there is no beat, so nothing is late
    Pulse().stop()
