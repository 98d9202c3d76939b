"""Reads the global configuration file of a network: its lite servers and trusted blocks.

TL: config.global. Keys and hashes are base64, IPv4 addresses signed 32-bit integers.
"""

import ipaddress
from pathlib import Path

import msgspec

from tonlake.ingest.blocks import BlockId, Hash
from tonlake.ingest.errors import SourceError


class LiteServer(msgspec.Struct, frozen=True):
    """Address of a lite server, and its public key (Ed25519)."""

    host: str
    port: int
    key: bytes

    def __str__(self) -> str:
        """Return ``host:port``."""
        return f"{self.host}:{self.port}"


class GlobalConfig(msgspec.Struct, frozen=True):
    """Lite servers of a network, and the blocks it declares as trusted."""

    servers: tuple[LiteServer, ...]
    zero_state: BlockId | None
    init_block: BlockId | None


class _Key(msgspec.Struct):
    key: Hash


class _Server(msgspec.Struct):
    ip: int
    port: int
    id: _Key


class _Validator(msgspec.Struct):
    zero_state: BlockId | None = None
    init_block: BlockId | None = None


class _File(msgspec.Struct):
    liteservers: list[_Server] = []
    validator: _Validator | None = None


def read_config(path: Path) -> GlobalConfig:
    """Read a global configuration file."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_File)
        servers = tuple(
            LiteServer(
                str(ipaddress.IPv4Address(server.ip & 0xFFFFFFFF)),
                server.port,
                server.id.key,
            )
            for server in found.liteservers
        )
        validator = found.validator or _Validator()
    except OSError as error:
        raise SourceError(f"{path.name} cannot be read: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{path.name} is not a global configuration of a network: {error}"
        ) from error
    if not servers:
        raise SourceError(f"{path.name} names no lite servers: it has no list `liteservers`")
    return GlobalConfig(servers, validator.zero_state, validator.init_block)
