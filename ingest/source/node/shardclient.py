"""How far a node is by its own account, and whether its archive bears that out.

A damaged seqno that is too small would leave out blocks that are there, and make a follower undo
blocks. So its block must be the archive's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.handle import MASTERCHAIN_SHARD
from tonlake.ingest.source.node.state import read_init_block, read_shard_client
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from tonlake.ingest.blocks import BlockId
    from tonlake.ingest.source.node.archive import Archive
    from tonlake.ingest.source.node.followed import FollowedStore


class ShardClient:
    """The newest masterchain block all of whose shard blocks the node has applied.

    Methods raise SourceError if it is no masterchain block, or not the archive's.
    """

    def __init__(self, state: FollowedStore) -> None:
        """Read it."""
        self._state = state
        self.read()

    def read(self) -> None:
        """Read it again from the store as that was caught up with last."""
        block = read_shard_client(self._state)
        if block is not None and (block.workchain, block.shard) != (MASTERCHAIN, MASTERCHAIN_SHARD):
            raise SourceError(
                f"{self._state.name}: the shard client is at {block}, in no masterchain"
            )
        self._block = block

    @property
    def seqno(self) -> int:
        """Its seqno; 0 while there is none."""
        return 0 if self._block is None else self._block.seqno

    @property
    def block(self) -> BlockId | None:
        """Its block; None while there is none."""
        return self._block

    def find_newest(self, archive: Archive) -> int:
        """Return the newest masterchain block that both this and the archive know."""
        self._check(archive)
        if archive.find_head(self.seqno) is not None:
            return self.seqno
        newest = max(0, min(self.seqno, archive.find_last()))
        # Where the archive's own number is less than its handles, those are believed.
        while newest < self.seqno and archive.find_head(newest + 1) is not None:
            newest += 1
        return newest

    def _check(self, archive: Archive) -> None:
        if not self._is_strange(archive):
            return
        if self._state.catch_up():  # a node that goes back writes one store after the other
            self.read()
            archive.refresh(rolled_back=True)
            if not self._is_strange(archive):
                return
        raise SourceError(
            f"{self._state.name}: the shard client is at {self._block}, but not at the block of"
            " that number which the archive has: the node's folder is damaged"
        )

    def _is_strange(self, archive: Archive) -> bool:
        if self._block is None:
            return False
        if self.seqno > 0:
            return archive.has_another(self._block)
        return self.seqno < 0 or read_init_block(self._state) not in (None, self._block)
