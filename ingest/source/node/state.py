"""The node's ``state`` store: how far the node is.

Keys are the SHA-256 of a boxed key object without fields, values boxed objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.tl import (
    DB_VERSION,
    DB_VERSION_KEY,
    INIT_BLOCK_ID,
    SHARD_CLIENT,
    TlReader,
    pack_constructor,
)

if TYPE_CHECKING:
    from tonlake.ingest.blocks import BlockId
    from tonlake.ingest.source.node.rocks import Store

SUPPORTED_VERSION = 2
SHARD_CLIENT_KEY = bytes.fromhex("268b010df1816f1f95c85343e3b35dfa0dc1176486a549e08c177ae151277fae")
INIT_BLOCK_KEY = bytes.fromhex("f2881431756ddf33e3c4f242039f7d30d16c00d2d7cd0b9bdefa8a7356d721d9")


def check_version(store: Store) -> None:
    """Make sure that the node's folder has the layout this reader knows."""
    value = store.get(pack_constructor(DB_VERSION_KEY))
    if value is None:
        return  # written once the node has upgraded an old folder; without it the layout is old
    reader = TlReader(value, f"{store.name}: db.state.dbVersion")
    reader.read_constructor(DB_VERSION)
    version = reader.read_int()
    if version != SUPPORTED_VERSION:
        raise SourceError(f"{store.name}: layout {version}; this reader knows {SUPPORTED_VERSION}")


def read_shard_client(store: Store) -> BlockId | None:
    """Return the newest masterchain block all of whose shard blocks the node has applied."""
    return _read_block(store, SHARD_CLIENT_KEY, SHARD_CLIENT, "db.state.shardClient")


def read_init_block(store: Store) -> BlockId | None:
    """Return the key block, or zero state, from which the node would start again."""
    return _read_block(store, INIT_BLOCK_KEY, INIT_BLOCK_ID, "db.state.initBlockId")


def _read_block(store: Store, key: bytes, constructor: int, what: str) -> BlockId | None:
    value = store.get(key)
    if value is None:
        return None
    reader = TlReader(value, f"{store.name}: {what}")
    reader.read_constructor(constructor)
    return reader.read_block_id()
