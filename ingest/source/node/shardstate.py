"""Which shard states celldb has, and the hashes that blocks name for them.

A masterchain block names the newest block of each shard (ShardHashes), and a block the root hash
of the state after it (Merkle update), so what celldb says of a state need not be believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.block.block import decode_bundle
from tonlake.ingest.errors import BlockUnavailable, SourceError
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.values import iter_tuples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.blocks import BlockSource
    from tonlake.ingest.source.node.celldb import CellDb

SHARDS_BEHIND = 1_000
"""Masterchain blocks before a state in which the newest blocks of its shards are searched."""

_BLOCK = ("workchain", "shard", "seqno", "root_hash", "file_hash")


class NamedStates(NamedTuple):
    """The states of all shards after a masterchain block, by workchain and shard prefix.

    ``key_seqno`` is the block that brought the configuration then.
    """

    mc_seqno: int
    root_hash: bytes
    prev_root_hash: bytes
    key_seqno: int
    state_hashes: tuple[bytes, ...]


def name_states(source: BlockSource, mc_seqno: int) -> NamedStates:
    """Return the root hashes of all shard states after a masterchain block.

    Raises:
        BlockUnavailable: the source lacks the block, or a block that it names.
    """
    found: dict[tuple[object, ...], bytes] = {}
    tables = decode_bundle(source.read_bundle(mc_seqno))
    tops = [
        top
        for at, *top in iter_tuples(tables["shard_blocks"], ("mc_seqno", *_BLOCK))
        if at == mc_seqno
    ]
    names = (
        "workchain",
        "seqno",
        "root_hash",
        "prev_root_hash",
        "key_block",
        "prev_key_block_seqno",
    )
    (master,) = (
        row[1:]
        for row in iter_tuples(tables["blocks"], names)
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
            f" {SHARDS_BEHIND} masterchain blocks up to it, so the hash of its state is unknown"
        )
    ordered = sorted(tops, key=lambda top: (top[0], top[1] & (1 << 64) - 1))
    # A zero state, of seqno 0, is named by its own hash.
    hashes = tuple(found[tuple(top)] if top[2] else top[3] for top in ordered)
    seqno, root_hash, before, is_key, key_before = master
    return NamedStates(seqno, root_hash, before, seqno if is_key else key_before, hashes)


def list_kept(celldb: CellDb, first: int, last: int) -> list[int]:
    """Return the masterchain blocks of a range of which celldb has a state, the newest first.

    States of blocks that never became part of the chain count, too.
    """
    ids = (entry.block_id for entry in celldb.states())
    return sorted(
        {
            each.seqno
            for each in ids
            if each.workchain == MASTERCHAIN and first <= each.seqno <= last
        },
        reverse=True,
    )


def find_states(source: BlockSource, celldb: CellDb, seqnos: Sequence[int]) -> NamedStates | None:
    """Return the first of some masterchain blocks whose states celldb has, of all shards."""
    for mc_seqno in seqnos:
        try:
            named = name_states(source, mc_seqno)
        except BlockUnavailable:
            continue
        if all(celldb.get(each) is not None for each in named.state_hashes):
            return named
    return None
