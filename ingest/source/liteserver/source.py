"""Reads blocks from lite servers, in the same bundles as a node's folder.

Blocks are fetched a window at a time, the next window in advance. Their bytes are verified against
the file hash of their id. Masterchain ids come from the servers; each is verified by the previous
block's hash and against the blocks in the configuration file. Shard ids come from masterchain
blocks and later shard blocks.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

import msgspec

from tonlake.ingest.blocks import BlockId, McBundle, McHead, RawBlock, ZeroState, name_mc_block
from tonlake.ingest.decode.block.block import find_zero_states
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockNotYet,
    BlockUnavailable,
    BocError,
    DecodeError,
    ServerFault,
    ServerRefusal,
    SourceError,
)
from tonlake.ingest.settings import LiteServerSettings
from tonlake.ingest.source.liteserver.config import GlobalConfig
from tonlake.ingest.source.liteserver.pool import Background
from tonlake.ingest.source.liteserver.query import LiteServerQueries
from tonlake.ingest.source.node.archive import Tops, read_previous, read_tops

T = TypeVar("T")

SHARD_BLOCKS_LIMIT = 10_000
"""Most shard blocks of one masterchain block; 256 lagging shards have far fewer."""

Window = dict[int, McBundle | BlockUnavailable]
"""Bundles by masterchain seqno, or the error of an unavailable one."""


class _McBlock(msgspec.Struct, frozen=True):
    """A masterchain block, the id of its predecessor, and the shard tops it names."""

    raw: RawBlock
    before: BlockId
    tops: Tops


async def _ask(block: object, ask: Callable[..., Awaitable[T]], *asked: object) -> T:
    """Await a query; turn errors of servers into errors of the block."""
    try:
        return await ask(*asked)
    except ServerRefusal as error:
        if not error.is_unknown:
            raise
        raise BlockNeverHad(f"no lite server has it: {error}", block=block) from error
    except ServerFault as error:
        if not error.is_wrong:
            raise
        raise BlockCorrupt(str(error), block=block) from error


async def _keep(ask: Callable[..., Awaitable[T]], *asked: object) -> T | BlockUnavailable:
    try:
        return await ask(*asked)
    except BlockUnavailable as error:
        return error


TIMEOUT_MS = 10_000
"""Timeout of one lite server in milliseconds; after it the next one is asked."""

WINDOW_MC_BLOCKS = 16
"""Masterchain blocks fetched at a time."""


class LiteSource:
    """The blocks of a network, read from its lite servers; follows the chain as it grows."""

    def __init__(self, config: GlobalConfig, settings: LiteServerSettings) -> None:
        """Ask the servers for their newest block."""
        self._config = config
        self._poll_s = settings.poll_ms / 1000
        self._background = Background()
        self._queries = LiteServerQueries(
            config.servers, timeout_ms=TIMEOUT_MS, parallel_queries=settings.queries
        )
        self._known = [one for one in (config.zero_state, config.init_block) if one is not None]
        self._proofs = settings.proofs
        self._key_block = self._known[-1] if self._known and self._proofs else None
        """Proves the newest block of each window, which validators must have signed."""
        self._heads: dict[BlockId, McHead] = {}
        self._window: Window = {}
        self._next: tuple[int, Future[Window]] | None = None
        self._asked_s = float("-inf")
        try:
            self._newest, self._zero = self._background.run(self._queries.ask_newest())
            self._check_network()
        except SourceError:
            self.close()
            raise

    def refresh(self) -> None:
        """Ask the servers for their newest block, at most once per poll interval."""
        if time.monotonic() - self._asked_s < self._poll_s:
            return
        newest, zero = self._background.run(self._queries.ask_newest())
        if zero != self._zero:
            raise SourceError("the lite servers belong to another network than before")
        self._newest = newest
        self._asked_s = time.monotonic()

    def first_mc_seqno(self) -> int:
        """Return the oldest masterchain block from which on a server has all blocks."""
        unknown, known = 0, self._newest.seqno
        if self.find_head(1) is not None:
            return 1
        while known - unknown > 1:
            middle = (unknown + known) // 2
            if self.find_head(middle) is None:
                unknown = middle
            else:
                known = middle
        # The block before the first one decides which shard blocks are new.
        return min(known + 1, self._newest.seqno)

    def last_mc_seqno(self) -> int:
        """Return the newest masterchain block that a server reported at the last refresh."""
        return self._newest.seqno

    def read_bundle(self, mc_seqno: int) -> McBundle:
        """Return one masterchain block and the shard blocks it commits."""
        if mc_seqno > self._newest.seqno:
            reason = f"the lite servers have masterchain blocks up to {self._newest.seqno}"
            raise BlockNotYet(reason, block=name_mc_block(mc_seqno))
        if mc_seqno not in self._window:
            self._window = self._take_window(mc_seqno)
        found = self._window.pop(mc_seqno)
        if isinstance(found, BlockUnavailable):
            raise found
        return found

    read_unchecked = read_bundle

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return the masterchain block of the servers at a seqno; None if there is none."""
        if mc_seqno > self._newest.seqno:
            return None
        head = self._heads.get(self._newest) if mc_seqno == self._newest.seqno else None
        if head is None:
            try:
                found = self._background.run(self._queries.find_mc_block(mc_seqno))
            except ServerRefusal as error:
                if not error.is_unknown:
                    raise
                return None
            self._heads = dict([found])
            head = found[1]
        return head

    def zero_states(self) -> tuple[ZeroState, ...]:
        """Return the zero states, the masterchain's first; empty if the servers have none."""
        try:
            return self._background.run(self._ask_zero_states())
        except ServerRefusal:
            return ()

    def describe(self) -> dict[str, str]:
        """Return the fingerprint for the commit log: the network and its newest block."""
        return {
            "kind": "liteserver",
            "zero_state": self._zero.root_hash.hex(),
            "newest": f"{self._newest}:{self._newest.root_hash.hex()}",
        }

    def close(self) -> None:
        """End all connections."""
        self._background.close(self._queries.close)

    def _check_network(self) -> None:
        expected = self._config.zero_state
        if self._proofs and expected is None and self._config.init_block is None:
            raise SourceError("the configuration names no init_block to prove other blocks by")
        if expected is not None and expected.root_hash != self._zero.root_hash:
            raise SourceError(
                f"the lite servers' chain begins with zero state {self._zero.root_hash.hex()},"
                f" and the configuration names {expected.root_hash.hex()}: another network"
            )

    def _take_window(self, first: int) -> Window:
        """Return the window that begins with ``first``, and start to fetch the next one."""
        ahead, self._next = self._next, None
        if ahead is not None and ahead[0] == first:
            window = self._background.wait(ahead[1])
        else:
            if ahead is not None:
                ahead[1].cancel()
            window = self._background.run(self._ask_window(first))
        after = first + len(window)
        if after <= self._newest.seqno:
            self._next = after, self._background.start(self._ask_window(after))
        return window

    async def _ask_window(self, first: int) -> Window:
        """Return the bundles of masterchain blocks, or the error of each unavailable one."""
        last = min(first + WINDOW_MC_BLOCKS - 1, self._newest.seqno)
        seqnos = range(max(1, first - 1), last + 1)
        found = await asyncio.gather(*(_keep(self._ask_mc_block, seqno) for seqno in seqnos))
        blocks = dict(zip(seqnos, found, strict=True))
        for seqno in seqnos:
            self._check_link(blocks.get(seqno - 1), blocks[seqno])
        for one, after in zip(found, [*found[1:], None], strict=True):
            # A block that has a successor here is proven by the hash in the successor.
            if isinstance(one, _McBlock) and not isinstance(after, _McBlock):
                await self._prove(one.raw.id)
        bundles = [_keep(self._ask_bundle, blocks, seqno) for seqno in range(first, last + 1)]
        return dict(zip(range(first, last + 1), await asyncio.gather(*bundles), strict=True))

    async def _ask_mc_block(self, mc_seqno: int) -> _McBlock:
        name = name_mc_block(mc_seqno)
        block_id, _head = await _ask(name, self._queries.find_mc_block, mc_seqno)
        data = await _ask(block_id, self._queries.ask_block, block_id, mc_seqno)
        raw = RawBlock(block_id, data)
        before, *others = read_previous(raw)
        if others:
            raise BlockCorrupt("a block of the masterchain merges no shards", block=block_id)
        try:
            return _McBlock(raw, before, read_tops(data, mc_seqno))
        except (BocError, DecodeError) as error:
            raise BlockCorrupt(str(error), block=block_id) from error

    def _check_link(
        self, before: _McBlock | BlockUnavailable | None, block: _McBlock | BlockUnavailable
    ) -> None:
        if isinstance(block, BlockUnavailable):
            return
        block_id = block.raw.id
        if isinstance(before, _McBlock) and before.raw.id.root_hash != block.before.root_hash:
            raise SourceError(
                f"the lite servers have different chains: {block_id} does not follow"
                f" {before.raw.id}, which they name as the block before it"
            )
        for known in self._known:
            for one in (block_id, block.before):
                if known.seqno == one.seqno and known != one:
                    raise SourceError(
                        f"the lite servers' {one} has root hash {one.root_hash.hex()}, and the"
                        f" configuration names {known.root_hash.hex()}: another chain"
                    )

    async def _prove(self, block_id: BlockId) -> None:
        """Verify the signatures of a block newer than the trusted one, if proofs are on."""
        known = self._key_block
        if known is not None and block_id.seqno > known.seqno:
            self._key_block = await self._queries.prove(known, block_id)

    async def _ask_bundle(
        self, blocks: dict[int, _McBlock | BlockUnavailable], mc_seqno: int
    ) -> McBundle:
        block, before = blocks[mc_seqno], blocks.get(mc_seqno - 1)
        if isinstance(block, BlockUnavailable):
            raise block
        if isinstance(before, BlockUnavailable):
            reason = f"its shard blocks are unknown without the block before it. {before}"
            raise type(before)(reason, block=name_mc_block(mc_seqno))
        earlier = set() if before is None else set(before.tops.committed_by)
        shards = await self._ask_shards(block.tops.new, earlier, mc_seqno)
        return McBundle(mc_seqno, (block.raw, *shards), block.tops.mark)

    async def _ask_shards(
        self, tops: Iterable[BlockId], earlier: set[BlockId], mc_seqno: int
    ) -> list[RawBlock]:
        """Return the shard blocks after ``earlier`` up to ``tops``, by workchain, shard, seqno."""
        found: dict[BlockId, RawBlock] = {}
        todo = set(tops) - earlier
        while todo:
            if len(found) + len(todo) > SHARD_BLOCKS_LIMIT:
                reason = f"more than {SHARD_BLOCKS_LIMIT} shard blocks lead to it"
                raise BlockCorrupt(reason, block=name_mc_block(mc_seqno))
            asked = [_ask(one, self._queries.ask_block, one, mc_seqno) for one in todo]
            sent = zip(todo, await asyncio.gather(*asked), strict=True)
            new = {one: RawBlock(one, data) for one, data in sent}
            found |= new
            named = {one for block in new.values() for one in read_previous(block)}
            todo = {one for one in named if one.seqno > 0} - earlier - found.keys()
        return [found[one] for one in sorted(found)]

    async def _ask_zero_states(self) -> tuple[ZeroState, ...]:
        first = await self._ask_zero_state(self._zero)
        named = find_zero_states(parse_boc(first.data))
        others = [await self._ask_zero_state(one) for one in named]
        return tuple(sorted([first, *others], key=lambda state: state.workchain))

    async def _ask_zero_state(self, one: BlockId) -> ZeroState:
        data = await self._queries.ask_block(one, 0, "getState")
        return ZeroState(one.workchain, one.root_hash, one.file_hash, data)
