"""Sends queries to one lite server over ADNL (TCP) and returns its answers.

pytoniq does handshake, encryption and TL; its own polling is off. Callers verify the answers.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from typing import TYPE_CHECKING, Any

from pytoniq.liteclient.client import LiteClient, LiteClientError
from pytoniq_core.tl.generator import TlError

from tonlake.ingest.errors import ServerFault, ServerRefusal

if TYPE_CHECKING:
    from tonlake.ingest.source.liteserver.config import LiteServer

LOG = logging.getLogger("tonlake.liteserver")
PACKET_BYTES_LIMIT = 1 << 25
"""Limit of an answer: a block has at most 2 MiB; zero states are the only states requested."""

LISTEN_S = 0.005
"""Poll interval of the client while no query is pending."""

AVOIDED_S, LONGEST_AVOIDED_S = 1.0, 30.0
"""Seconds for which a failed server comes last; doubled with each failure up to a maximum."""

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


class Connection:
    """A connection to one lite server, opened by the first query and reopened after a failure."""

    def __init__(self, server: LiteServer, timeout_ms: int) -> None:
        """Store the server and the timeout of its answers; nothing is connected yet."""
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

    async def ask(self, name: str, data: Answer) -> Answer:
        """Return the answer to ``liteServer.<name>``, with the field names of lite_api.tl.

        Raises:
            ServerRefusal: the server answers with an error.
            ServerFault: it cannot be reached, times out, or sends an invalid answer.
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
        return answer

    async def _exchange(self, name: str, data: Answer) -> tuple[Answer, str]:
        """Return an answer, and the TL type it should have.

        Servers hang up at any time: a query that fails on an old connection is sent once more.
        """
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
