"""Reads blocks from lite servers, in the same bundles as a node's folder.

Blocks are fetched a window at a time, the next window in advance. Their bytes are verified against
the file hash of their id. Masterchain ids come from the servers; each is verified by the previous
block's hash and against the blocks in the configuration file. Shard ids come from masterchain
blocks and later shard blocks.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from tonlake.ingest.blocks import BlockId, McBundle, McHead, ZeroState
from tonlake.ingest.decode.block.config import find_zero_states
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BlockNotYet, BlockUnavailable, ServerRefusal, SourceError
from tonlake.ingest.source.liteserver.pool import ServerPool
from tonlake.ingest.source.liteserver.query import LiteServerQueries
from tonlake.ingest.source.liteserver.window import WindowReader
from tonlake.ingest.source.node.handle import name_mc_block

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from typing import Any

    from tonlake.ingest.settings import LiteServerSettings
    from tonlake.ingest.source.liteserver.config import NetworkConfig
    from tonlake.ingest.source.liteserver.window import Window


T = TypeVar("T")


class Background:
    """Runs coroutines in one thread, so that connections stay open between calls."""

    def __init__(self) -> None:
        """Start the thread."""
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


TIMEOUT_MS = 10_000
"""Timeout of one lite server in milliseconds; after it the next one is asked."""

WINDOW_MC_BLOCKS = 16
"""Masterchain blocks fetched at a time."""


class LiteSource:
    """The blocks of a network, read from its lite servers; follows the chain as it grows."""

    def __init__(self, config: NetworkConfig, settings: LiteServerSettings) -> None:
        """Ask the servers for their newest block.

        Raises:
            SourceError: no server answers, or they belong to another network than the file.
        """
        self._config = config
        self._poll_s = settings.poll_ms / 1000
        self._background = Background()
        self._pool = self._background.run(_make_pool(config, settings))
        self._queries = LiteServerQueries(self._pool)
        known = [one for one in (config.zero_state, config.init_block) if one is not None]
        self._proofs = settings.proofs
        self._windows = WindowReader(self._queries, known, proofs=self._proofs and bool(known))
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
        """Return one masterchain block and the shard blocks it commits.

        Raises:
            BlockNotYet: it is newer than the newest block of the servers.
            BlockNeverHad: no server has it, or one of its shard blocks.
            BlockCorrupt: the servers send other bytes than those of the block.
            SourceError: no server answers, or they serve different chains.
        """
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
        self._background.close(self._pool.close)

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
        last = min(first + WINDOW_MC_BLOCKS - 1, self._newest.seqno)
        return await self._windows.ask(first, last)

    async def _ask_zero_states(self) -> tuple[ZeroState, ...]:
        first = await self._ask_zero_state(self._zero)
        others = [
            await self._ask_zero_state(one) for one in find_zero_states(parse_boc(first.data))
        ]
        return tuple(sorted([first, *others], key=lambda state: state.workchain))

    async def _ask_zero_state(self, one: BlockId) -> ZeroState:
        data = await self._queries.ask_zero_state(one)
        return ZeroState(one.workchain, one.root_hash, one.file_hash, data)


async def _make_pool(config: NetworkConfig, settings: LiteServerSettings) -> ServerPool:
    return ServerPool(
        config.servers,
        timeout_ms=TIMEOUT_MS,
        parallel_queries=settings.queries,
    )
