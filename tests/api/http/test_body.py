"""Request bodies: a deadline, a minimum rate, a share per address, and no slot meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.api.http.server import make_connections
from tonlake.api.errors import BodyLate, ServiceBusy
from tonlake.api.http import body
from tonlake.api.http.body import Bodies
from tonlake.api.http.gate import REFUSAL
from tonlake.api.http.transit import Transit

LENGTH = 1 << 20


class Recorder:
    """An application that notes what it receives and why requests are refused."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.refusals: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        del send
        self.refusals.append(scope.get("state", {}).get(REFUSAL))
        text, more = b"", self.refusals[-1] is None
        while more:
            message = await receive()
            text, more = text + message["body"], message["more_body"]
        self.bodies.append(text)


class Client:
    """Sends a body piece by piece, a pause before each; then nothing more."""

    def __init__(self, *pieces: bytes, pause_s: float = 0, ends: bool = True) -> None:
        self._pieces, self._pause_s, self._ends = list(pieces), pause_s, ends

    async def receive(self) -> Any:
        if not self._pieces:
            await asyncio.sleep(60)
        await asyncio.sleep(self._pause_s)
        piece = self._pieces.pop(0)
        more = bool(self._pieces) or not self._ends
        return {"type": "http.request", "body": piece, "more_body": more}


def make_layer(app: Any, *, max_s: float = 30, share: int = 100, held: int = 1 << 30) -> Bodies:
    transit = Transit(make_connections(), most=held, max_of_address=held)
    return Bodies(app, transit, max_s=max_s, max_bytes=LENGTH, max_of_address=share)


def make_scope(address: str = "192.0.2.1", length: int | None = 4) -> Any:
    header = (b"transfer-encoding", b"chunked")
    header = header if length is None else (b"content-length", b"%d" % length)
    client = (address, 1)
    return {"type": "http", "method": "POST", "path": "/", "headers": [header], "client": client}


async def unsent(_message: Any) -> None:
    raise AssertionError


async def ask(layer: Bodies, *clients: Client, addresses: tuple[str, ...] = ()) -> None:
    names = addresses or ("192.0.2.1",) * len(clients)
    await asyncio.gather(
        *(
            layer(make_scope(name), client.receive, unsent)
            for name, client in zip(names, clients, strict=True)
        )
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "GRACE_S", 0.2)


@pytest.mark.parametrize("length", [4, None])
def test_a_body_arrives_as_it_was_sent(length: int | None) -> None:
    app = Recorder()
    client = Client(b"ab", b"", b"cd", pause_s=0.01)
    asyncio.run(make_layer(app)(make_scope(length=length), client.receive, unsent))
    assert (app.bodies, app.refusals) == ([b"abcd"], [None])


@pytest.mark.parametrize(
    ("client", "refused"),
    [
        (Client(), True),
        (Client(b"a", ends=False), True),
        (Client(*[b"a"] * 9, pause_s=0.05), True),  # 20 bytes a second
        (Client(*[b"a" * 200] * 9, pause_s=0.05), False),  # 4,000 bytes a second
    ],
)
def test_a_body_comes_at_a_minimum_rate(client: Client, refused: bool) -> None:  # noqa: FBT001
    app = Recorder()
    asyncio.run(asyncio.wait_for(ask(make_layer(app), client), 10))
    assert isinstance(app.refusals[0], BodyLate) is refused


def test_a_body_has_a_deadline_however_fast_it_comes() -> None:
    app = Recorder()
    asyncio.run(ask(make_layer(app, max_s=0.3), Client(*[b"a" * 1000] * 40, pause_s=0.02)))
    assert isinstance(app.refusals[0], BodyLate)


def test_a_deadline_may_be_shorter_than_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "GRACE_S", 30)
    app = Recorder()
    asyncio.run(asyncio.wait_for(ask(make_layer(app, max_s=0.1), Client()), 10))
    assert isinstance(app.refusals[0], BodyLate)


def test_a_request_without_a_body_goes_on_at_once() -> None:
    app = Recorder()
    scope = make_scope(length=0)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    asyncio.run(make_layer(app)(scope, receive, unsent))
    assert app.refusals == [None]


def test_the_oldest_body_of_an_address_gives_way() -> None:
    app = Recorder()
    layer = make_layer(app, share=2)
    slow = [Client(b"a", b"b", pause_s=0.05) for _ in range(4)]
    asyncio.run(ask(layer, *slow, addresses=("a", "a", "a", "b")))
    assert Counter(map(type, app.refusals)) == {BodyLate: 1, type(None): 3}


def test_bytes_of_bodies_are_bounded() -> None:
    app = Recorder()
    layer = make_layer(app, held=1500)
    clients = [Client(b"a" * 1000, b"b", pause_s=0.05) for _ in range(2)]
    asyncio.run(ask(layer, *clients))
    assert Counter(map(type, app.refusals)) == {ServiceBusy: 1, type(None): 1}
    asyncio.run(ask(layer, Client(b"a" * 1000, b"b")))  # what was held is free again
    assert app.refusals[-1] is None


def test_what_is_too_long_goes_on_to_be_refused() -> None:
    app = Recorder()
    pieces = [b"a" * (1 << 18)] * 6
    for length in (6 << 18, None):
        client = Client(*pieces)
        asyncio.run(make_layer(app)(make_scope(length=length), client.receive, unsent))
        assert app.bodies.pop() == b"".join(pieces)
