"""Treats several lite servers as one: if one fails, the query goes to the next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from tonlake.ingest.errors import ServerFault, ServerRefusal
from tonlake.ingest.source.liteserver.config import read_config
from tonlake.ingest.source.liteserver.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tonlake.ingest.source.liteserver.config import LiteServer, NetworkConfig
    from tonlake.ingest.source.liteserver.connection import Answer


T = TypeVar("T")


class ServerPool:
    """Queries lite servers round robin; recently failed or lagging servers come last."""

    def __init__(
        self, servers: Iterable[LiteServer], *, timeout_ms: int, parallel_queries: int
    ) -> None:
        """Create connections; none is opened yet."""
        self.connections = [Connection(server, timeout_ms) for server in servers]
        self._turn = 0
        self._slots = asyncio.Semaphore(parallel_queries)

    async def ask(
        self,
        name: str,
        data: Answer,
        read: Callable[[Answer], T],
        *,
        mc_seqno: int = 0,
    ) -> T:
        """Return ``read(answer)`` for the first valid answer to ``liteServer.<name>``.

        ``read`` raises ServerFault for an invalid answer; then the next server is asked.
        Servers without block ``mc_seqno`` come last.

        Raises:
            ServerRefusal: all reachable servers answer with errors.
            ServerFault: no server can be reached, or their answers are wrong.
        """
        failures: list[ServerFault | ServerRefusal] = []
        for connection in self._list_in_turn(mc_seqno):
            try:
                async with self._slots:
                    answer = await connection.ask(name, data)
            except (ServerFault, ServerRefusal) as error:
                failures.append(error)
                continue
            try:
                return read(answer)
            except ServerFault as error:
                connection.avoid()
                failures.append(error)
        refusals = [one for one in failures if isinstance(one, ServerRefusal)]
        wrong = [one for one in failures if isinstance(one, ServerFault) and one.is_wrong]
        if refusals and not wrong:
            raise next((one for one in refusals if not one.is_unknown), refusals[0])
        reasons = "; ".join(dict.fromkeys(map(str, failures)))
        raise ServerFault(f"no lite server can be used: {reasons}", name=name, is_wrong=bool(wrong))

    async def ask_all(self, name: str, read: Callable[[Connection, Answer], T]) -> list[T]:
        """Return ``read(connection, answer)`` for every server that answers.

        Servers that failed recently are asked only if there are no others.

        Raises:
            ServerFault: no server answers.
        """
        steady = [one for one in self.connections if not one.is_avoided]
        connections = steady or self.connections
        asked = [self._ask_one(one, name, read) for one in connections]
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

    async def _ask_one(
        self, connection: Connection, name: str, read: Callable[[Connection, Answer], T]
    ) -> T:
        return read(connection, await connection.ask(name, {}))

    def _list_in_turn(self, mc_seqno: int) -> list[Connection]:
        self._turn = (self._turn + 1) % len(self.connections)
        in_turn = self.connections[self._turn :] + self.connections[: self._turn]
        return sorted(in_turn, key=lambda one: (one.is_avoided, one.last_mc_seqno < mc_seqno))


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
    """Send an external message to the first lite server that accepts it.

    Raises:
        SourceError: the configuration cannot be read.
        ServerRefusal: all reachable servers refuse it.
        ServerFault: no server can be reached.
    """
    asyncio.run(_send(read_config(config), boc, timeout_ms))


async def _send(config: NetworkConfig, boc: bytes, timeout_ms: int) -> None:
    pool = ServerPool(config.servers, timeout_ms=timeout_ms, parallel_queries=1)
    try:
        await pool.ask("sendMessage", {"body": boc}, bool)
    finally:
        await pool.close()
