"""Fetches a few masterchain blocks and the shard blocks they commit, in parallel."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockUnavailable,
    BocError,
    DecodeError,
    ServerFault,
    ServerRefusal,
    SourceError,
)
from tonlake.ingest.source.node.bundle import Tops, read_previous, read_tops
from tonlake.ingest.source.node.handle import name_mc_block

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from tonlake.ingest.source.liteserver.query import LiteServerQueries

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


class WindowReader:
    """Fetches bundles, and verifies that their masterchain blocks link to each other."""

    def __init__(
        self, queries: LiteServerQueries, known: Iterable[BlockId], *, proofs: bool = False
    ) -> None:
        """Fetch by ``queries``; compare with the trusted blocks ``known``.

        With ``proofs``, validators must have signed the newest block of each window, proven from
        the last of the known blocks.
        """
        self._queries = queries
        self._known = tuple(known)
        self._key_block = self._known[-1] if proofs else None

    async def ask(self, first: int, last: int) -> Window:
        """Return the bundles of masterchain blocks, or the error of each unavailable one.

        Raises:
            SourceError: no server answers, or they serve different chains.
        """
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
        try:
            (before,) = read_previous(raw)
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
    """Await a query; return the error of an unavailable block."""
    try:
        return await ask(*asked)
    except BlockUnavailable as error:
        return error
