"""Bytes in transit: request bodies in time, responses in pieces, and limits of both."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.api.http.server import REQUEST, make_connections, read, serving
from tests.clock import Clock
from tonlake.api.errors import BodyLate, ServiceBusy
from tonlake.api.http import transit
from tonlake.api.http.gate import REFUSAL
from tonlake.api.http.server import PRESSED_S
from tonlake.api.http.transit import PIECE_BYTES, Carrier, Transit, hold

LENGTH = 1 << 20


class Recorder:
    """An application that notes what it receives and why requests are refused."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.messages = 0
        self.refusals: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        del send
        self.refusals.append(scope.get("state", {}).get(REFUSAL))
        text, more = b"", self.refusals[-1] is None
        while more:
            message = await receive()
            self.messages += 1
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


def make_layer(
    app: Any,
    *,
    max_s: float = 30,
    share: int = 100,
    held: int = 1 << 30,
    transit: Transit | None = None,
) -> Carrier:
    return Carrier(
        app,
        transit or Transit(make_connections(), most=held, max_of_address=held),
        body_s=max_s,
        max_body_bytes=LENGTH,
        max_bodies_of_address=share,
    )


def make_scope(address: str = "192.0.2.1", length: int | None = 4) -> Any:
    header = (b"transfer-encoding", b"chunked")
    header = header if length is None else (b"content-length", b"%d" % length)
    head = {"method": "POST", "path": "/", "headers": [header]}
    return {"type": "http", "client": (address, 1), "state": {}, **head}


async def unsent(_message: Any) -> None:
    raise AssertionError


async def ask(layer: Carrier, *clients: Client, addresses: tuple[str, ...] = ()) -> None:
    names = addresses or ("192.0.2.1",) * len(clients)
    await asyncio.gather(
        *(
            layer(make_scope(name), client.receive, unsent)
            for name, client in zip(names, clients, strict=True)
        )
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transit, "GRACE_S", 0.2)


@pytest.fixture
def app() -> Recorder:
    return Recorder()


@pytest.mark.parametrize("length", [4, None])
def test_a_body_arrives_as_it_was_sent(app: Recorder, length: int | None) -> None:
    client = Client(b"ab", b"", b"cd", pause_s=0.01)
    asyncio.run(make_layer(app)(make_scope(length=length), client.receive, unsent))
    assert (app.bodies, app.messages, app.refusals) == ([b"abcd"], 1, [None])


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


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_the_oldest_of_too_many_bodies_is_dropped(app: Recorder, steps: int) -> None:
    layer = make_layer(app, share=4)
    tasks = []
    for _ in range(20):
        receive = Client(b"a", ends=False).receive
        tasks.append(asyncio.create_task(layer(make_scope(), receive, unsent)))
        for _ in range(steps):
            await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    assert [task.done() for task in tasks] == [True] * 16 + [False] * 4
    await asyncio.gather(*tasks)
    assert not layer._waiting
    assert [type(refusal) for refusal in app.refusals] == [BodyLate] * 20


def test_a_body_has_a_deadline_however_fast_it_comes(app: Recorder) -> None:
    asyncio.run(ask(make_layer(app, max_s=0.3), Client(*[b"a" * 1000] * 40, pause_s=0.02)))
    assert isinstance(app.refusals[0], BodyLate)


def test_a_request_without_a_body_goes_on_at_once(app: Recorder) -> None:
    asyncio.run(make_layer(app)(make_scope(length=0), Client(b"").receive, unsent))
    assert app.refusals == [None]


def test_bytes_of_bodies_are_bounded(app: Recorder) -> None:
    layer = make_layer(app, held=1500)
    clients = [Client(b"a" * 1000, b"b", pause_s=0.05) for _ in range(2)]
    asyncio.run(ask(layer, *clients))
    assert Counter(map(type, app.refusals)) == {ServiceBusy: 1, type(None): 1}
    asyncio.run(ask(layer, Client(b"a" * 1000, b"b")))  # what was held is free again
    assert app.refusals[-1] is None


def test_what_is_too_long_goes_on_to_be_refused(app: Recorder) -> None:
    pieces = [b"a" * (1 << 18)] * 6
    for length in (6 << 18, None):
        client = Client(*pieces)
        asyncio.run(make_layer(app)(make_scope(length=length), client.receive, unsent))
        assert app.bodies.pop() == b"".join(pieces)


LARGE = 16 << 20


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Answer with as many bytes as the path names, or with 503 if they may not be held."""
    del receive
    size = int(scope["path"].rpartition("/")[2])
    status = 200
    try:
        hold(scope, size)
    except ServiceBusy:
        status, size = 503, 256
    headers = [(b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": bytes(range(256)) * (size // 256)})


def carry(
    connections: Any = None, most: int = 3 * LARGE, share: int = LARGE
) -> tuple[Carrier, Transit]:
    transit = Transit(connections or make_connections(), most=most, max_of_address=share)
    return make_layer(answer, transit=transit), transit


@pytest.mark.parametrize("path", ["/256", f"/{PIECE_BYTES}", "/api/scan/1048576", "/1048576"])
def test_an_answer_arrives_complete(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    returned: list[bool] = []
    monkeypatch.setattr(transit, "RETURNED_BYTES", LENGTH // 2)
    monkeypatch.setattr(transit, "return_memory", lambda: returned.append(True))

    async def send(message: Any) -> None:
        sent.append(message)

    layer, held = carry()
    scope = {"type": "http", "path": path, "state": {}, "client": ("192.0.2.1", 1), "headers": []}
    asyncio.run(layer(scope, None, send))  # type: ignore[arg-type]
    size = int(path.rpartition("/")[2])
    assert sent[0]["status"] == 200
    assert b"".join(message["body"] for message in sent[1:]) == bytes(range(256)) * (size // 256)
    in_pieces = size > PIECE_BYTES and "scan" not in path
    assert len(sent) == 1 + (size // PIECE_BYTES if in_pieces else 1)
    assert [message.get("more_body", False) for message in sent[1:]] == [
        *[True] * (len(sent) - 2),
        False,
    ]
    assert held.held == 0
    assert returned == [True] * (size > LENGTH // 2)


def ask_without_reading(clock: Clock, after_s: float, *sources: str) -> tuple[list[bytes], int]:
    """Return statuses of answers that are not read, and the bytes held after the last one."""

    async def run() -> tuple[list[bytes], int]:
        connections = make_connections(clock)
        layer, transit = carry(connections)
        async with serving(layer, connections) as clients:
            opened = []
            for source in sources:
                opened.append(await clients.open(REQUEST % b"/%d" % LARGE, source))
                await asyncio.sleep(0.1)
                connections.sweep()
                clock.now_s += after_s
            statuses = []
            held = transit.held
            loop = asyncio.get_running_loop()
            for client in opened:
                try:
                    statuses.append((await loop.sock_recv(client, 12))[9:])
                except ConnectionError:
                    statuses.append(b"")
        return statuses, held

    return asyncio.run(run())


def test_bytes_are_bounded_in_all() -> None:
    sources = [f"127.0.0.{host}" for host in range(1, 6)]
    assert ask_without_reading(Clock(), 0, *sources) == ([*[b"200"] * 3, *[b"503"] * 2], 3 * LARGE)


def test_those_that_do_not_read_give_way() -> None:
    statuses, held = ask_without_reading(Clock(), PRESSED_S + 1, *["127.0.0.1"] * 3)
    assert statuses[-1] == b"200"
    assert held == LARGE


async def test_small_answers_are_sent_whatever_waits() -> None:
    connections = make_connections()
    layer, transit = carry(connections, most=LARGE)
    async with serving(layer, connections) as clients:
        await clients.open(REQUEST % b"/%d" % LARGE)
        assert transit.held == LARGE
        for path, status in ((b"/256", b"200"), (b"/1048576", b"503")):
            client = await clients.open(REQUEST % path, "127.0.0.7")
            assert (await read(client))[0][9:12] == status
