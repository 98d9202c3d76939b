"""Fetches account states and configurations from lite servers, proven by a block's hash.

TL: liteServer.getAccountState, liteServer.getConfigAll. A Merkle proof of the block shows the hash
of the state after it (Block.state_update); a second one, of that state, shows the path to the
requested object, or to where it would be.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tonlake.ingest.decode.block.config import read_params
from tonlake.ingest.decode.block.header import read_state_hash
from tonlake.ingest.decode.block.state import find_account, read_config, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BocError, DecodeError, ServerFault, SourceError
from tonlake.ingest.source.liteserver.config import read_config as read_network
from tonlake.ingest.source.liteserver.pool import ServerPool
from tonlake.ingest.source.liteserver.query import open_proof, write_id
from tonlake.ingest.source.liteserver.source import Background

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tonlake.ingest.blocks import BlockId
    from tonlake.ingest.decode.cell.tree import CellTree
    from tonlake.ingest.source.liteserver.config import NetworkConfig
    from tonlake.ingest.source.liteserver.connection import Answer

T = TypeVar("T")

REST_S = 5.0
"""Seconds for which no server is asked after all have failed."""


class ProvenAccount(msgspec.Struct, frozen=True):
    """An account after a block; ``boc`` is its Account cell."""

    hash: bytes
    last_trans_lt: int
    last_trans_hash: bytes
    boc: bytes


class StateServers:
    """Fetches states from lite servers; may be called from any thread.

    Methods raise ServerRefusal if the servers do not have the requested object, and SourceError
    if none sends a valid answer; for ``REST_S`` seconds after that no server is asked.
    """

    def __init__(self, config: NetworkConfig, *, timeout_ms: int, parallel_queries: int) -> None:
        """Create the pool of a network's servers; none is connected yet."""
        self._background = Background()
        self._pool = self._background.run(_make_pool(config, timeout_ms, parallel_queries))
        self._rests_until_s = float("-inf")
        self._problem = ""

    def ask_account(
        self, master: BlockId, top: BlockId, workchain: int, account: bytes
    ) -> ProvenAccount | None:
        """Return an account after a masterchain block; None if it does not exist.

        ``top`` is the block of its shard that ``master`` names, or ``master`` itself.
        """

        def read(answer: Answer) -> ProvenAccount | None:
            return read_account_answer(answer["proof"], answer["state"], top.root_hash, account)

        asked = {"id": write_id(master), "account": {"workchain": workchain, "id": account.hex()}}
        return self._ask("getAccountState", asked, read, master.seqno)

    def ask_config(self, master: BlockId) -> dict[int, bytes]:
        """Return the configuration after a masterchain block: a bag of cells per parameter."""

        def read(answer: Answer) -> dict[int, bytes]:
            hashed = open_proof(answer["state_proof"], master.root_hash)
            tree = open_proof(answer["config_proof"], read_state_hash(hashed))
            root = read_config(tree, read_state(tree, tree.roots[0]))
            if root is None or tree.level_mask(root):
                raise DecodeError("a part of the configuration is not shown")
            return {param: boc for _, _, param, _, boc in read_params(tree, root, 0, 0)}

        return self._ask("getConfigAll", {"mode": 0, "id": write_id(master)}, read, master.seqno)

    def close(self) -> None:
        """End all connections."""
        self._background.close(self._pool.close)

    def _ask(self, name: str, asked: Answer, read: Callable[[Answer], T], mc_seqno: int) -> T:
        if time.monotonic() < self._rests_until_s:
            raise SourceError(self._problem)

        def check(answer: Answer) -> T:
            try:
                return read(answer)
            except (BocError, DecodeError, TypeError) as error:
                raise ServerFault(f"a proof: {error}", name=name, is_wrong=True) from error

        try:
            return self._background.run(self._pool.ask(name, asked, check, mc_seqno=mc_seqno))
        except ServerFault as error:
            self._rests_until_s, self._problem = time.monotonic() + REST_S, str(error)
            raise


def read_account_answer(
    proof: bytes, state: bytes, root_hash: bytes, account: bytes
) -> ProvenAccount | None:
    """Return an account after the block with ``root_hash``; None if it does not exist.

    Raises:
        BocError, DecodeError: the proof is of another block, or does not show the account.
    """
    hashed = open_proof(proof, root_hash)
    tree = open_proof(proof, read_state_hash(hashed), 1)
    entry = find_account(tree, read_state(tree, tree.roots[0]).accounts, account)
    if entry is None:
        if state:
            raise DecodeError("a state was sent for an account that does not exist")
        return None
    expected = tree.hash(entry.cell, 0)
    shown = _parse_whole(state)
    if shown.hash(shown.roots[0]) != expected:
        raise DecodeError(f"the hash of the state that was sent is not the proven {expected.hex()}")
    return ProvenAccount(expected, entry.last_trans_lt, entry.last_trans_hash, state)


def _parse_whole(boc: bytes) -> CellTree:
    tree = parse_boc(boc)
    if len(tree.roots) != 1 or tree.level_mask(tree.roots[0]):
        raise DecodeError("the state that was sent is pruned")
    return tree


def open_state_servers(config: Path, *, timeout_ms: int, parallel_queries: int) -> StateServers:
    """Return a client for the lite servers of a configuration file.

    Raises:
        SourceError: the file cannot be read.
    """
    network = read_network(config)
    return StateServers(network, timeout_ms=timeout_ms, parallel_queries=parallel_queries)


async def _make_pool(config: NetworkConfig, timeout_ms: int, parallel_queries: int) -> ServerPool:
    return ServerPool(config.servers, timeout_ms=timeout_ms, parallel_queries=parallel_queries)
