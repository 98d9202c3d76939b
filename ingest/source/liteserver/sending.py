"""A message to the network, through a lite server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tonlake.ingest.source.liteserver.config import read_config
from tonlake.ingest.source.liteserver.pool import ServerPool

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.source.liteserver.config import NetworkConfig

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
    """Hand a message from outside to the first lite server that takes it.

    Raises:
        SourceError: the configuration cannot be read.
        ServerRefusal: those that can be reached refuse it.
        ServerFault: none can be reached.
    """
    asyncio.run(_send(read_config(config), boc, timeout_ms))


async def _send(config: NetworkConfig, boc: bytes, timeout_ms: int) -> None:
    pool = ServerPool(config.servers, timeout_ms=timeout_ms, parallel_queries=1)
    try:
        await pool.ask("sendMessage", {"body": boc}, bool)
    finally:
        await pool.close()
