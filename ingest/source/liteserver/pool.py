"""Treats several lite servers as one: if one fails, the query goes to the next."""

import asyncio
import base64
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pytoniq.liteclient.client import LiteClient, LiteClientError
from pytoniq_core.tl.generator import TlError

from tonlake.ingest.errors import BocError, DecodeError, ServerFault, ServerRefusal
from tonlake.ingest.source.liteserver.config import GlobalConfig, LiteServer, read_config

LOG = logging.getLogger("tonlake.liteserver")
PACKET_BYTES_LIMIT = 1 << 25
"""Limit of an answer: a block has at most 2 MiB; zero states are the only states requested."""

LISTEN_S = 0.005
"""Poll interval of the client while no query is pending."""

AVOIDED_S, LONGEST_AVOIDED_S = 1.0, 30.0
"""Seconds for which a failed server comes last; doubled with each failure up to a maximum."""

T = TypeVar("T")
Answer = dict[str, Any]


class _Client(LiteClient):
    """The pytoniq client without its own polling of the chain; refuses queries once closing."""

    is_gone = False

    async def update_last_blocks(self) -> None:
        """Do nothing."""

    async def block_updater(self) -> None:
        """Do nothing."""

    async def send_and_encrypt(self, data: bytes, qid: str) -> asyncio.Future[Answer]:
        """Send a query; return the future of its answer."""
        if self.is_gone:
            raise ConnectionAbortedError("the connection was closed")
        reply: asyncio.Future[Answer] = self.loop.create_future()
        self.tasks[qid] = reply
        self.writer.write(self.encrypt(data))
        try:
            await self.writer.drain()
        except OSError:
            reply.cancel()
            await self.close()
            raise
        return reply

    async def close(self) -> None:
        """Close the connection; pending queries fail."""
        self.is_gone = True
        await super().close()

    async def receive(self, data_len: int) -> bytes:
        """Receive ``data_len`` bytes; a length above the limit ends the connection."""
        if data_len > PACKET_BYTES_LIMIT:
            await self.close()
            raise ConnectionAbortedError(f"a packet of {data_len} bytes")
        data: bytes = await super().receive(data_len)
        return data


class ServerConnection:
    """A connection to one lite server, opened by the first query and reopened after a failure."""

    def __init__(self, server: LiteServer, timeout_ms: int) -> None:
        self.server = server
        self.last_mc_seqno = 0
        """The newest masterchain block that the server reported."""
        self._failures = 0
        self._avoided_until_s = 0.0
        self._timeout_s = timeout_ms / 1000
        self._client: _Client | None = None
        self._connecting = asyncio.Lock()

    @property
    def is_avoided(self) -> bool:
        """Whether the server failed recently."""
        return time.monotonic() < self._avoided_until_s

    async def ask(self, name: str, data: Answer, read: Callable[[Answer], T]) -> T:
        """Return ``read(answer)`` of ``liteServer.<name>``; field names are those of lite_api.tl.

        An answer for which ``read`` raises DecodeError, BocError or TypeError is wrong.
        """
        try:
            answer, expected = await self._exchange(name, data)
        except (OSError, EOFError, LiteClientError, TlError, AttributeError) as error:
            # AttributeError: a closed client has set its reader and writer to None.
            self.avoid()
            reason = str(error) or type(error).__name__
            raise ServerFault(f"{self.server}: {reason}", name=name) from error
        kind = answer.get("@type", "") if isinstance(answer, dict) else ""
        if kind == "liteServer.error":
            raise ServerRefusal(str(self.server), answer["code"], answer["message"])
        if kind.lower() != expected.lower():  # liteServer.blockData = liteServer.BlockData
            await self.close()
            self.avoid()
            reason = f"{self.server}: it answers {kind or 'nothing'}, not {expected}"
            raise ServerFault(reason, name=name, is_wrong=True)
        self._failures = 0
        try:
            return read(answer)
        except (BocError, DecodeError, TypeError) as error:
            self.avoid()
            raise ServerFault(str(error), name=name, is_wrong=True) from error

    async def _exchange(self, name: str, data: Answer) -> tuple[Answer, str]:
        """Return an answer, and the TL type it should have; an old connection fails once."""
        known = self._client
        try:
            return await self._exchange_once(name, data)
        except TimeoutError:
            raise
        except (OSError, EOFError, LiteClientError, AttributeError):
            if known is None:
                raise
            return await self._exchange_once(name, data)

    async def _exchange_once(self, name: str, data: Answer) -> tuple[Answer, str]:
        client = await self._connect()
        schema = client.schemas.get_by_name(f"liteServer.{name}")
        packet, query_id = client.serialize_adnl_ls_query(schema, data)
        try:
            reply = await client.send_and_encrypt(client.serialize_packet(packet), query_id)
            return await asyncio.wait_for(reply, self._timeout_s), schema.class_name
        except (OSError, EOFError, LiteClientError, TlError, AttributeError):
            if client is self._client:
                await self.close()
            raise

    def avoid(self) -> None:
        """Use this server last for a while."""
        self._failures += 1
        longer_s = AVOIDED_S * 2 ** min(self._failures - 1, 10)
        self._avoided_until_s = time.monotonic() + min(LONGEST_AVOIDED_S, longer_s)

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None and client.writer is not None:
            await client.close()

    async def _connect(self) -> _Client:
        async with self._connecting:
            if self._client is None or self._client.is_gone:
                await self.close()
                key = base64.b64encode(self.server.key).decode()
                # Annotated as int, used as float.
                timeout_s: Any = self._timeout_s
                client = _Client(self.server.host, self.server.port, key, timeout_s)
                client.logger = LOG
                client.delta = LISTEN_S
                self._client = client
                await client.connect()
            return self._client


class Background:
    """Runs coroutines in one thread, so that connections stay open between calls."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    def start(self, asked: Coroutine[Any, Any, T]) -> Future[T]:
        """Schedule a coroutine."""
        return asyncio.run_coroutine_threadsafe(asked, self._loop)

    def wait(self, future: Future[T]) -> T:
        """Return the result of ``future``; cancel it if the wait is interrupted."""
        try:
            return future.result()
        finally:
            future.cancel()

    def run(self, asked: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result."""
        return self.wait(self.start(asked))

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel all coroutines, run ``last``, and stop the thread."""
        if self._loop.is_closed():
            return
        self.run(_cancel_others())
        self.run(last())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class ServerPool:
    """Queries lite servers round robin; recently failed or lagging servers come last."""

    def __init__(
        self, servers: Iterable[LiteServer], *, timeout_ms: int, parallel_queries: int
    ) -> None:
        self.connections = [ServerConnection(server, timeout_ms) for server in servers]
        self._turn = 0
        self._slots = asyncio.Semaphore(parallel_queries)

    async def ask(
        self, name: str, data: Answer, read: Callable[[Answer], T], *, mc_seqno: int = 0
    ) -> T:
        """Return ``read(answer)`` for the first valid answer to ``liteServer.<name>``.

        After an invalid answer the next server is asked. Servers without block ``mc_seqno`` come
        last.
        """
        failures: list[ServerFault | ServerRefusal] = []
        self._turn = (self._turn + 1) % len(self.connections)
        in_turn = self.connections[self._turn :] + self.connections[: self._turn]
        in_turn.sort(key=lambda one: (one.is_avoided, one.last_mc_seqno < mc_seqno))
        for connection in in_turn:
            try:
                async with self._slots:
                    return await connection.ask(name, data, read)
            except (ServerFault, ServerRefusal) as error:
                failures.append(error)
        refusals = [one for one in failures if isinstance(one, ServerRefusal)]
        wrong = [one for one in failures if isinstance(one, ServerFault) and one.is_wrong]
        if refusals and not wrong:
            raise next((one for one in refusals if not one.is_unknown), refusals[0])
        reasons = "; ".join(dict.fromkeys(map(str, failures)))
        raise ServerFault(f"no lite server can be used: {reasons}", name=name, is_wrong=bool(wrong))

    async def ask_all(self, name: str, read: Callable[[ServerConnection, Answer], T]) -> list[T]:
        """Return ``read(connection, answer)`` for every server that answers."""
        steady = [one for one in self.connections if not one.is_avoided] or self.connections
        asked = (one.ask(name, {}, partial(read, one)) for one in steady)
        found = await asyncio.gather(*asked, return_exceptions=True)
        failures = [one for one in found if isinstance(one, ServerFault | ServerRefusal)]
        for one in found:
            if isinstance(one, BaseException) and one not in failures:
                raise one
        if len(failures) == len(found):
            reasons = "; ".join(map(str, failures))
            raise ServerFault(f"no lite server can be used: {reasons}", name=name)
        return [one for one in found if not isinstance(one, BaseException)]

    async def close(self) -> None:
        """Close all connections."""
        for connection in self.connections:
            await connection.close()


ERROR_KINDS = {
    601: "FAILURE",
    602: "ERROR",
    603: "WARNING",
    621: "PROTOVIOLATION",
    651: "NOTREADY",
    652: "TIMEOUT",
    653: "CANCELLED",
}
"""Names of the node's error codes (common/errorcode.h); all others are UNKNOWN."""


def send_message(config: Path, boc: bytes, timeout_ms: int) -> None:
    """Send an external message to the first lite server that accepts it."""
    asyncio.run(_send(read_config(config), boc, timeout_ms))


async def _send(config: GlobalConfig, boc: bytes, timeout_ms: int) -> None:
    pool = ServerPool(config.servers, timeout_ms=timeout_ms, parallel_queries=1)
    try:
        await pool.ask("sendMessage", {"body": boc}, bool)
    finally:
        await pool.close()
