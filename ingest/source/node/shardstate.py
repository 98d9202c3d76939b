"""Finds the shard states of a node, and the hashes that blocks name for them.

A masterchain block names the newest block of each shard (ShardHashes), and each block the root hash
of the state after it (Merkle update); other sources about a state need not be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import NamedTuple, Protocol

from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.decode.block.block import decode_bundle
from tonlake.ingest.decode.cell.packed import CellStore
from tonlake.ingest.decode.wholestate import Branch, WholeState
from tonlake.ingest.errors import BlockUnavailable, SourceError
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.rows import iter_tuples

SHARDS_BEHIND = 1_000
"""Masterchain blocks before a state that are searched for the newest blocks of its shards."""

_BLOCK = ("workchain", "shard", "seqno", "root_hash", "file_hash")


class NamedState(NamedTuple):
    """The state of one shard (signed), and the hash of its root cell."""

    workchain: int
    shard: int
    root_hash: bytes


class NamedStates(NamedTuple):
    """The states of all shards after a masterchain block, by workchain and shard prefix.

    ``key_seqno`` is the key block whose configuration is in force after the block.
    """

    mc_seqno: int
    root_hash: bytes
    prev_root_hash: bytes
    key_seqno: int
    states: tuple[NamedState, ...]


class StateStore(Protocol):
    """A store of whole states; methods raise SourceError."""

    def list_kept(self, first: int, last: int) -> list[int]:
        """Return the masterchain seqnos of a range with stored states, newest first."""

    def has(self, named: NamedStates) -> bool:
        """Return whether the states of all shards after a masterchain block are stored."""

    def open(self, named: NamedStates, state: NamedState) -> AbstractContextManager[OpenState]:
        """Open the state of one shard."""


class ClosableStore(CellStore, Protocol):
    """An open store of cells."""

    def close(self) -> None:
        """Close the store."""


class StatePart(NamedTuple):
    """A branch of accounts, the store of its cells, and how another process opens the store."""

    store: CellStore
    reopen: Callable[[], ClosableStore]
    accounts: Branch


class OpenState(NamedTuple):
    """The state of one shard: its top, and its accounts in parts, in order."""

    top: WholeState
    parts: list[StatePart]


class CellDbStates:
    """The states in celldb."""

    def __init__(self, celldb: CellDb) -> None:
        """Use ``celldb``; nothing is read yet."""
        self._celldb = celldb

    def list_kept(self, first: int, last: int) -> list[int]:
        """Return the masterchain seqnos of a range with states, canonical or not, newest first."""
        found = {
            block.seqno for block, _ in self._celldb.states() if block.workchain == MASTERCHAIN
        }
        return sorted((seqno for seqno in found if first <= seqno <= last), reverse=True)

    def has(self, named: NamedStates) -> bool:
        """Return whether the root cells of all shards are stored."""
        return all(self._celldb.get(state.root_hash) is not None for state in named.states)

    @contextmanager
    def open(self, _named: NamedStates, state: NamedState) -> Iterator[OpenState]:
        """Open the state of one shard, as a single part."""
        top = WholeState(self._celldb, state.root_hash)
        accounts = top.find_accounts()
        reopen = partial(CellDb, self._celldb.folder)
        parts = [] if accounts is None else [StatePart(self._celldb, reopen, accounts)]
        yield OpenState(top, parts)


def name_states(source: BlockSource, mc_seqno: int) -> NamedStates:
    """Return the root hashes of all shard states after a masterchain block."""
    found: dict[tuple[object, ...], bytes] = {}
    tables = decode_bundle(source.read_bundle(mc_seqno))
    tops = [
        top
        for at, *top in iter_tuples(tables["shard_blocks"], ("mc_seqno", *_BLOCK))
        if at == mc_seqno
    ]
    names = ("workchain", "seqno", "root_hash", "prev_root_hash", "key_block")
    (master,) = (
        row[1:]
        for row in iter_tuples(tables["blocks"], (*names, "prev_key_block_seqno"))
        if row[:2] == (MASTERCHAIN, mc_seqno)
    )
    at, oldest = mc_seqno, max(1, mc_seqno - SHARDS_BEHIND)
    lacking = {tuple(top) for top in tops if top[2]}
    while True:
        for *block, state_hash in iter_tuples(tables["blocks"], (*_BLOCK, "state_root_hash")):
            found[tuple(block)] = state_hash
        if lacking <= found.keys() or at <= oldest:
            break
        at -= 1
        tables = decode_bundle(source.read_bundle(at))
    if not lacking <= found.keys():
        raise SourceError(
            f"masterchain block {mc_seqno}: a shard block that it names is in none of the"
            f" {SHARDS_BEHIND} masterchain blocks before it, so its state hash is unknown"
        )
    ordered = sorted(tops, key=lambda top: (top[0], top[1] & (1 << 64) - 1))
    # A zero state has seqno 0; its id contains the hash of the state.
    states = tuple(
        NamedState(top[0], top[1], found[tuple(top)] if top[2] else top[3]) for top in ordered
    )
    seqno, root_hash, before, is_key, key_before = master
    return NamedStates(seqno, root_hash, before, seqno if is_key else key_before, states)


def find_states(
    source: BlockSource, store: StateStore, seqnos: Sequence[int]
) -> NamedStates | None:
    """Return the first of ``seqnos`` for which the store has the states of all shards."""
    for mc_seqno in seqnos:
        try:
            named = name_states(source, mc_seqno)
        except BlockUnavailable:
            continue
        if store.has(named):
            return named
    return None
