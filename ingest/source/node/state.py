"""Reads the node's ``state`` store: how far the node has come.

A key is the SHA-256 of a boxed key object without fields, a value a boxed object. A damaged seqno
that is too small would hide blocks and make a follower undo them, so its block is compared with
the archive's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.handle import MASTERCHAIN_SHARD
from tonlake.ingest.source.node.tl import (
    DB_VERSION,
    DB_VERSION_KEY,
    INIT_BLOCK_ID,
    SHARD_CLIENT,
    TlReader,
    pack_constructor,
)
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from tonlake.ingest.blocks import BlockId
    from tonlake.ingest.source.node.archive import Archive
    from tonlake.ingest.source.node.followed import FollowedStore
    from tonlake.ingest.source.node.rocks import Store

SUPPORTED_VERSION = 2
SHARD_CLIENT_KEY = bytes.fromhex("268b010df1816f1f95c85343e3b35dfa0dc1176486a549e08c177ae151277fae")
INIT_BLOCK_KEY = bytes.fromhex("f2881431756ddf33e3c4f242039f7d30d16c00d2d7cd0b9bdefa8a7356d721d9")


def check_version(store: Store) -> None:
    """Raise SourceError unless the node's folder has the supported layout."""
    value = store.get(pack_constructor(DB_VERSION_KEY))
    if value is None:
        return  # written when a node upgrades an old folder; without it the layout is old
    reader = TlReader(value, f"{store.name}: db.state.dbVersion")
    reader.read_constructor(DB_VERSION)
    version = reader.read_int()
    if version != SUPPORTED_VERSION:
        raise SourceError(f"{store.name}: layout {version}; this reader knows {SUPPORTED_VERSION}")


def read_shard_client(store: Store) -> BlockId | None:
    """Return the newest masterchain block whose shard blocks the node has all applied."""
    return _read_block(store, SHARD_CLIENT_KEY, SHARD_CLIENT, "db.state.shardClient")


def read_init_block(store: Store) -> BlockId | None:
    """Return the key block or zero state from which the node would start."""
    return _read_block(store, INIT_BLOCK_KEY, INIT_BLOCK_ID, "db.state.initBlockId")


def _read_block(store: Store, key: bytes, constructor: int, what: str) -> BlockId | None:
    value = store.get(key)
    if value is None:
        return None
    reader = TlReader(value, f"{store.name}: {what}")
    reader.read_constructor(constructor)
    return reader.read_block_id()


class ShardClient:
    """The newest masterchain block whose shard blocks the node has all applied.

    Methods raise SourceError if it is not in the masterchain, or differs from the archive's.
    """

    def __init__(self, state: FollowedStore) -> None:
        """Read it from ``state``."""
        self._state = state
        self.read()

    def read(self) -> None:
        """Read it again, after the store has caught up."""
        block = read_shard_client(self._state)
        if block is not None and (block.workchain, block.shard) != (MASTERCHAIN, MASTERCHAIN_SHARD):
            raise SourceError(
                f"{self._state.name}: the shard client is at {block}, not in the masterchain"
            )
        self._block = block

    @property
    def seqno(self) -> int:
        """The seqno of the block; 0 while there is none."""
        return 0 if self._block is None else self._block.seqno

    @property
    def block(self) -> BlockId | None:
        """The id of the block; None while there is none."""
        return self._block

    def find_newest(self, archive: Archive) -> int:
        """Return the newest masterchain block known both here and to ``archive``."""
        self._check(archive)
        if archive.find_head(self.seqno) is not None:
            return self.seqno
        newest = max(0, min(self.seqno, archive.find_last()))
        # The archive's own number may be less than its handles show; the handles are right.
        while newest < self.seqno and archive.find_head(newest + 1) is not None:
            newest += 1
        return newest

    def _check(self, archive: Archive) -> None:
        if not self._differs_from(archive):
            return
        if self._state.catch_up():  # a node that is rolled back writes one store after another
            self.read()
            archive.refresh(rolled_back=True)
            if not self._differs_from(archive):
                return
        raise SourceError(
            f"{self._state.name}: the shard client is at {self._block}, but the archive has another"
            " block with that seqno: the node's folder is damaged"
        )

    def _differs_from(self, archive: Archive) -> bool:
        if self._block is None:
            return False
        if self.seqno > 0:
            return archive.has_conflicting(self._block)
        return self.seqno < 0 or read_init_block(self._state) not in (None, self._block)
