"""Sends requests on schedule, whether or not the previous ones were answered.

An open loop: the time of each request is fixed beforehand, and its latency counts from there. A
server that falls behind is seen as slow.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator

import httptools
import msgspec

from tests.bench.figure import percentile

MAX_CONNECTIONS = 4000
"""Requests that are waited for at once; one more than that counts as failed."""

GIVE_UP_S = 120.0
FAILED = 0
"""Status of a request that got no answer."""


class Outcome(msgspec.Struct, frozen=True):
    """One request: its scheduled time, seconds until its complete response, and its status."""

    due_s: float
    took_s: float
    status: int
    path: str
    why: str = ""
    """What there was in place of an answer."""

    late_s: float = 0.0
    """How much later than due it was asked, which is the fault of this program."""


class Connection(asyncio.Protocol):
    """One kept connection, with one request at a time."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[int] | None = None
        self.is_open = False
        self.is_used = False
        """Whether it has brought an answer before."""

        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.is_open = transport, True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(exc or ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Note that the response is complete; called by the parser."""
        if self.answer is not None and not self.answer.done():
            self.is_used = True
            self.answer.set_result(self._parser.get_status_code())

    async def ask(self, path: str) -> int:
        """Send one request and return the status of its response."""
        assert self._transport is not None
        self.answer = asyncio.get_running_loop().create_future()
        self._transport.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return await asyncio.wait_for(self.answer, GIVE_UP_S)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


class Traffic:
    """Requests to one port at a rate, over as many connections as needed."""

    def __init__(self, port: int, paths: Iterator[str]) -> None:
        """Take the port, and the paths in order."""
        self._port, self._paths = port, paths
        self._idle: list[Connection] = []
        self._waiting = 0
        self.outcomes: list[Outcome] = []

    async def run(self, rate: float, seconds: float) -> list[Outcome]:
        """Send requests, wait for the responses, and return the outcomes."""
        began_s, before = time.monotonic(), len(self.outcomes)
        tasks: set[asyncio.Task[None]] = set()
        for number in range(int(rate * seconds)):
            due_s = began_s + number / rate
            pause_s = due_s - time.monotonic()
            await asyncio.sleep(max(0.0, pause_s))
            task = asyncio.create_task(self._ask(next(self._paths), due_s))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        return self.outcomes[before:]

    async def _ask(self, path: str, due_s: float) -> None:
        status, why, late_s = FAILED, "too many wait", time.monotonic() - due_s
        if self._waiting < MAX_CONNECTIONS:
            self._waiting += 1
            try:
                status, why = await self._send(path), ""
            except OSError as error:  # a timeout is one
                why = type(error).__name__
            finally:
                self._waiting -= 1
        self.outcomes.append(Outcome(due_s, time.monotonic() - due_s, status, path, why, late_s))

    async def _send(self, path: str) -> int:
        """Send a request; retry if its kept connection was closed meanwhile (RFC 9110, 9.2.2)."""
        while True:
            connection = await self._connect()
            was_used = connection.is_used
            try:
                status = await connection.ask(path)
            except ConnectionError:
                connection.close()
                if not was_used:
                    raise
            except BaseException:
                connection.close()
                raise
            else:
                self._idle.append(connection)
                return status

    async def _connect(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Connection, "127.0.0.1", self._port))[1]

    def close(self) -> None:
        """Close the connections."""
        for connection in self._idle:
            connection.close()


def describe(outcomes: list[Outcome]) -> dict[str, object]:
    """Return counts by status and the times of the responses with status 200, in ms."""
    statuses: dict[str, int] = {}
    for one in outcomes:
        name = "no answer" if one.status == FAILED else str(one.status)
        statuses[name] = statuses.get(name, 0) + 1
    ok_ms = [one.took_s * 1000 for one in outcomes if one.status == 200]
    shed_ms = [one.took_s * 1000 for one in outcomes if one.status == 503]
    times = {
        f"{name}_ms": round(percentile(taken, part), 1)
        for name, taken, part in (
            ("median", ok_ms, 0.5),
            ("p99", ok_ms, 0.99),
            ("longest", ok_ms, 1.0),
            ("shed_p99", shed_ms, 0.99),
            ("asked_late_p99", [one.late_s * 1000 for one in outcomes], 0.99),
        )
        if taken
    }
    reasons = Counter(one.why for one in outcomes if one.status == FAILED)
    return {"requests": len(outcomes), "statuses": statuses, **times} | (
        {"no_answer": dict(reasons)} if reasons else {}
    )
