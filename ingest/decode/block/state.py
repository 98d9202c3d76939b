"""Reads shard states: complete ones, and both sides of a block's Merkle update.

TL-B: shard_state#9023afe2 (ShardStateUnsplit), split_state#5f327da5, ShardAccounts =
HashmapAugE 256 ShardAccount DepthBalanceInfo, account_descr$_, masterchain_state_extra#cc26.

Cells are stored with the hash, level and child hashes that they have in the state, not in the block
that introduced them: inside a Merkle update everything above a pruned branch is one level higher. A
cell under *d* Merkle cells of the state has its state hash at level *d*; there the update's own
pruned branches have a level above *d*, and pruned branches of the state itself do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tonlake.ingest.decode.block.header import check_tag, read_shard_ident
from tonlake.ingest.decode.block.shard import skip_currencies
from tonlake.ingest.decode.cell.dictionary import find_leaf, iter_hashmap
from tonlake.ingest.decode.cell.exotic import ORDINARY, PRUNED
from tonlake.ingest.decode.cell.record import pack_cell
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tonlake.ingest.decode.cell.boc import CellTree
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.rows import Row


ACCOUNT_BITS = 256
_STATE_TAG = 0x9023AFE2
_SPLIT_STATE_TAG = 0x5F327DA5
_MC_STATE_EXTRA_TAG = 0xCC26


class ShardState(msgspec.Struct, frozen=True):
    """ShardStateUnsplit: its identity, and the cells of its parts."""

    workchain: int
    shard: int
    seqno: int
    gen_utime: int
    out_msg_queue: int
    accounts: int
    totals: int
    custom: int | None


class ShardAccount(NamedTuple):
    """An entry of ShardAccounts: the Account cell and the account's last transaction."""

    account: bytes
    cell: int
    last_trans_lt: int
    last_trans_hash: bytes


def read_state(tree: CellTree, cell: int) -> ShardState:
    """Read the top of a ShardStateUnsplit."""
    state = tree.slice(cell)
    check_tag(state, 32, _STATE_TAG, "shard state")
    state.load_int(32)  # global_id
    workchain, shard = read_shard_ident(state)
    seqno, _vert_seqno, gen_utime = (state.load_uint(32) for _ in range(3))
    state.skip(64 + 32)  # gen_lt, min_ref_mc_seqno
    out_msg_queue = state.load_ref()
    state.load_bit()  # before_split
    accounts, totals = state.load_ref(), state.load_ref()
    custom = state.load_maybe_ref()
    return ShardState(workchain, shard, seqno, gen_utime, out_msg_queue, accounts, totals, custom)


def read_state_sides(tree: CellTree, cell: int) -> list[ShardState]:
    """Read the old side of an update: one state, or the two that an after_merge block joins.

    Pruned states are left out.
    """
    if tree.kind(cell) == PRUNED:
        return []
    is_split = tree.slice(cell).peek_uint(32) == _SPLIT_STATE_TAG
    states = tree.refs(cell) if is_split else (cell,)
    return [read_state(tree, state) for state in states if tree.kind(state) != PRUNED]


def iter_shard_accounts(tree: CellTree, cell: int) -> Iterator[ShardAccount]:
    """Yield the entries of ShardAccounts by account; pruned entries are left out."""
    for key, value in _iter_descriptions(tree, cell):
        yield _load_account(key, value)


def find_account(tree: CellTree, cell: int, account: bytes) -> ShardAccount | None:
    """Return the entry of an account in ShardAccounts; None if there is none.

    Raises:
        BocError: the tree is a proof that does not contain the path to it.
    """
    if tree.kind(cell) != ORDINARY:
        raise BocError("the accounts of the state are pruned")
    root = tree.slice(cell).load_maybe_ref()
    key = int.from_bytes(account, "big")
    leaf = None if root is None else find_leaf(tree, root, key, ACCOUNT_BITS)
    return None if leaf is None else load_leaf(key, leaf)


def load_leaf(key: int, leaf: CellSlice) -> ShardAccount:
    """Read a leaf of ShardAccounts after its label: the augmentation, and account_descr$_."""
    _skip_balance(leaf)
    return _load_account(key, leaf)


def _load_account(key: int, value: CellSlice) -> ShardAccount:
    account_cell, last_hash = value.load_ref(), value.load_bytes(32)
    return ShardAccount(key.to_bytes(32, "big"), account_cell, value.load_uint(64), last_hash)


def find_accounts(tree: CellTree, cell: int) -> dict[int, int]:
    """Return the Account cells in ShardAccounts by account (unsigned integer)."""
    return {key: value.load_ref() for key, value in _iter_descriptions(tree, cell)}


def _iter_descriptions(tree: CellTree, cell: int) -> Iterator[tuple[int, CellSlice]]:
    """Yield account and slice of each ShardAccount that is not pruned."""
    if tree.kind(cell) == PRUNED:
        return
    root = tree.slice(cell).load_maybe_ref()
    if root is None:
        return
    for key, value in iter_hashmap(tree, root, ACCOUNT_BITS, skip_pruned=True):
        _skip_balance(value)
        yield key, value


def _skip_balance(value: CellSlice) -> None:
    value.load_uint(5)  # DepthBalanceInfo.split_depth:(#<= 30)
    skip_currencies(value)


def read_libraries(tree: CellTree, state: ShardState) -> int | None:
    """Return the root of the public libraries (HashmapE 256 LibDescr); None if there are none."""
    totals = tree.slice(state.totals)
    totals.load_uint(128)  # overload_history, underload_history
    skip_currencies(totals)  # total_balance
    skip_currencies(totals)  # total_validator_fees
    return totals.load_maybe_ref()


def read_config(tree: CellTree, state: ShardState) -> int | None:
    """Return the root of the configuration (Hashmap 32 ^Cell); None outside the masterchain."""
    if state.custom is None:
        return None
    extra = tree.slice(state.custom)
    check_tag(extra, 16, _MC_STATE_EXTRA_TAG, "masterchain state extra")
    extra.load_maybe_ref()  # shard_hashes
    extra.load_bytes(32)  # config_addr
    return extra.load_ref()


_EXOTIC_BIT = 8

CellAt = tuple[int, int]
"""A cell and its Merkle depth: the number of Merkle cells of the state above it."""


class StateCells:
    """Appends rows of ``state_cells`` for any number of blocks, one per hash."""

    def __init__(self, rows: list[Row]) -> None:
        """Append to ``rows``."""
        self._rows = rows
        self._seen: set[bytes] = set()

    def keep(self, tree: CellTree, roots: Iterable[CellAt], mc_seqno: int) -> set[bytes]:
        """Append all cells under ``roots``; return the state hashes of those that are pruned."""
        pruned: set[bytes] = set()
        seen = self._seen
        for depth, cells in iter_depths(tree, roots):
            tree.hash_all(cells)
            for cell in cells:
                state_hash = tree.pruned_hash(cell, depth)
                if state_hash is not None:
                    pruned.add(state_hash)
                    continue
                state_hash = tree.hash(cell, depth)
                if state_hash not in seen:
                    seen.add(state_hash)
                    self._rows.append((state_hash, mc_seqno, *pack_cell(tree, cell, depth)))
        return pruned


def iter_cells(tree: CellTree, roots: Iterable[CellAt]) -> Iterator[CellAt]:
    """Yield every cell under ``roots``, including them, once for each of its Merkle depths."""
    for depth, found in iter_depths(tree, roots):
        for cell in found:
            yield cell, depth


def iter_depths(tree: CellTree, roots: Iterable[CellAt]) -> Iterator[tuple[int, list[int]]]:
    """Yield each Merkle depth, ascending, with all cells under ``roots`` at that depth."""
    waiting: dict[int, dict[int, None]] = {}
    for cell, depth in roots:
        waiting.setdefault(depth, {})[cell] = None
    cells, links = tree.cells, tree.links
    while waiting:
        depth = min(waiting)
        met = waiting.pop(depth)
        found = list(met)
        for cell in found:
            children = links[cell]
            # A Merkle cell: no other exotic cell has children.
            if children and cells[cell][0] & _EXOTIC_BIT:
                waiting.setdefault(depth + 1, {}).update(dict.fromkeys(children))
                continue
            for child in children:
                if child not in met:
                    met[child] = None
                    found.append(child)
        yield depth, found
