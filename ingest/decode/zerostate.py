"""Decodes complete shard states, from which a chain or a lake starts.

TL-B: ShardStateUnsplit, as in zero states and persistent states.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.account import StateAt, Touched, make_row, read_account
from tonlake.ingest.decode.block.config import read_params
from tonlake.ingest.decode.block.state import (
    StateCells,
    iter_shard_accounts,
    read_config,
    read_libraries,
    read_state,
)
from tonlake.ingest.decode.block.update import read_all_libraries
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.errors import BlockCorrupt, DecodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tonlake.ingest.blocks import ZeroState
    from tonlake.ingest.decode.cell.boc import CellTree

TABLES = ("account_states", "state_cells", "config_params", "libraries")
"""The tables filled from a complete state."""


def decode_zero_states(states: Sequence[ZeroState]) -> dict[str, pa.Table]:
    """Decode zero states to rows with ``mc_seqno`` 0.

    Return the tables account_states, state_cells, config_params and libraries.

    Raises:
        BlockCorrupt: the bytes of a state do not match its hashes.
        DecodeError: they are not a shard state.
    """
    trees = []
    for state in states:
        block = f"({state.workchain},zerostate)"
        if sha256(state.data).digest() != state.file_hash:
            raise BlockCorrupt("the bytes do not have the file hash", block=block)
        tree = parse_boc(state.data)
        if tree.hash(tree.roots[0]) != state.root_hash:
            raise BlockCorrupt("the root cell does not have the root hash", block=block)
        trees.append(tree)
    return decode_states(trees, mc_seqno=0)


def decode_states(trees: Sequence[CellTree], *, mc_seqno: int) -> dict[str, pa.Table]:
    """Decode complete shard states after one masterchain block; tables as for zero states."""
    rows = RowSet()
    cells = StateCells(rows.table("state_cells"))
    for tree in trees:
        if tree.level_mask(tree.roots[0]):
            raise DecodeError("shard state: parts of it are pruned, so it is incomplete")
        _read_rows(tree, mc_seqno, rows, cells)
    tables = rows.to_arrow()
    return {name: tables[name] for name in TABLES}


def _read_rows(tree: CellTree, mc_seqno: int, rows: RowSet, cells: StateCells) -> None:
    shard = read_state(tree, tree.roots[0])
    at = StateAt(shard.workchain, shard.shard, shard.seqno, mc_seqno, shard.gen_utime)
    roots = []
    for entry in iter_shard_accounts(tree, shard.accounts):
        touched = Touched(
            entry.account, entry.last_trans_lt, entry.last_trans_hash, tree.hash(entry.cell)
        )
        rows.table("account_states").append(
            make_row(tree, at, touched, read_account(tree, entry.cell))
        )
        roots.append((entry.cell, 0))
    libraries = read_all_libraries(tree, read_libraries(tree, shard), mc_seqno)
    rows.table("libraries").extend([row for row, _ in libraries])
    roots += [(library, 0) for _, library in libraries]
    config = read_config(tree, shard)
    if config is not None:
        rows.table("config_params").extend(read_params(tree, config, mc_seqno, shard.gen_utime))
    cells.keep(tree, roots, mc_seqno)
