"""A whole shard state, read part by part out of a store that gives cells by hash.

TL-B: ShardStateUnsplit, ShardAccounts = HashmapAugE 256 ShardAccount DepthBalanceInfo. Reading
begins at the root cell, each cell is checked against the hash that its parent has for it, and only
the part at hand is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tonlake.ingest.decode.block.account import StateAt, Touched, make_row, read_account
from tonlake.ingest.decode.block.config import read_params
from tonlake.ingest.decode.block.state import (
    ACCOUNT_BITS,
    StateCells,
    load_leaf,
    read_config,
    read_libraries,
    read_state,
)
from tonlake.ingest.decode.block.update import read_all_libraries
from tonlake.ingest.decode.cell.dictionary import load_label, read_label
from tonlake.ingest.decode.cell.record import append_packed
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree, read_bits
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.errors import DecodeError
from tonlake.lake.schema import ACCOUNT_STATES, CONFIG_PARAMS, LIBRARIES, STATE_CELLS

if TYPE_CHECKING:
    import pyarrow as pa

Packed = dict[bytes, tuple[bytes, list[bytes]]]
"""Cells by hash: descriptors with data, and the hashes of the children."""

Fetch = Callable[[Collection[bytes]], Packed]
"""Returns all cells with some hashes; raises SourceError where one is missing or damaged."""

Tables = dict[str, "pa.Table"]

LOOK_AHEAD = 256
"""Nodes of the dictionary of accounts that are fetched together."""

_EMPTY_CELL = bytes(2)
_EXOTIC_BIT = 8
_FORK_REFS = 2


class Node(NamedTuple):
    """A node of ShardAccounts: its cell, the key up to its label, and the bits still to come."""

    cell: bytes
    key: int
    bits_left: int
    is_leaf: bool = False


class WholeState:
    """One shard state; methods raise what ``fetch`` does, BocError and DecodeError."""

    def __init__(self, fetch: Fetch, root_hash: bytes) -> None:
        """Read the top of the state."""
        self._fetch = fetch
        tree, root, children = self._open(root_hash)
        self._top = read_state(tree, root)
        self._children = children
        self.workchain, self.shard = self._top.workchain, self._top.shard

    def iter_accounts(self) -> Iterator[Node]:
        """Yield the leaves of ShardAccounts in order."""
        tree, root, children = self._open(self._children[self._top.accounts])
        dictionary = tree.slice(root).load_maybe_ref()
        todo = [] if dictionary is None else [Node(children[dictionary], 0, ACCOUNT_BITS)]
        while todo:  # the last one comes first
            if todo[-1].is_leaf:
                yield todo.pop()
                continue
            ahead = todo[-LOOK_AHEAD:]
            cells = self._fetch({node.cell for node in ahead if not node.is_leaf})
            todo[-LOOK_AHEAD:] = [
                below
                for node in ahead
                for below in ([node] if node.is_leaf else _open_node(node, *cells[node.cell]))
            ]

    def measure_share(self, node: Node) -> float:
        """Return the share of the shard's account ids that lie before a node, 0 to 1."""
        prefix = self.shard & (1 << 64) - 1
        size = (prefix & -prefix) << 1
        account = node.key << node.bits_left
        return ((account >> ACCOUNT_BITS - 64) % size) / size

    def decode_accounts(
        self, leaves: Sequence[Node], mc_seqno: int, skip: Collection[bytes], *, only_active: bool
    ) -> Tables:
        """Decode accounts as rows of ``account_states`` and ``state_cells``.

        Of accounts in ``skip`` there are cells alone, with ``only_active`` of others than active
        ones nothing.
        """
        tree, places = self._load({leaf.cell for leaf in leaves})
        top = self._top
        at = StateAt(top.workchain, top.shard, top.seqno, mc_seqno, top.gen_utime)
        rows = RowSet()
        roots = []
        for leaf in leaves:
            start = CellSlice(tree, places[leaf.cell])
            key, _ = load_label(start, leaf.bits_left, leaf.key)
            entry = load_leaf(key, start)
            account = read_account(tree, entry.cell)
            if only_active and account.account_status != "active":
                continue
            roots.append((entry.cell, 0))
            if entry.account in skip:
                continue
            touched = Touched(
                entry.account, entry.last_trans_lt, entry.last_trans_hash, tree.hash(entry.cell)
            )
            rows.table(ACCOUNT_STATES.name).append(make_row(tree, at, touched, account))
        StateCells(rows.table(STATE_CELLS.name)).keep(tree, roots, mc_seqno)
        return _take(rows, ACCOUNT_STATES.name, STATE_CELLS.name)

    def decode_libraries(self, mc_seqno: int, skip: Collection[bytes]) -> Tables:
        """Decode the public libraries but some as rows of ``libraries`` and ``state_cells``."""
        totals, root, children = self._open(self._children[self._top.totals])
        held = read_libraries(totals, msgspec.structs.replace(self._top, totals=root))
        rows = RowSet()
        if held is not None:
            tree, places = self._load({children[held]})
            libraries = [
                (row, cell)
                for row, cell in read_all_libraries(tree, places[children[held]], mc_seqno)
                if row[1] not in skip
            ]
            rows.table(LIBRARIES.name).extend([row for row, _ in libraries])
            roots = [(cell, 0) for _, cell in libraries]
            StateCells(rows.table(STATE_CELLS.name)).keep(tree, roots, mc_seqno)
        return _take(rows, LIBRARIES.name, STATE_CELLS.name)

    def decode_config(self, key_seqno: int) -> Tables:
        """Decode the configuration, which key block ``key_seqno`` brought; a shard has none."""
        rows = RowSet()
        if self._top.custom is not None:
            custom, root, children = self._open(self._children[self._top.custom])
            held = read_config(custom, msgspec.structs.replace(self._top, custom=root))
            if held is not None:
                tree, places = self._load({children[held]})
                params = read_params(tree, places[children[held]], key_seqno, self._top.gen_utime)
                rows.table(CONFIG_PARAMS.name).extend(params)
        return _take(rows, CONFIG_PARAMS.name)

    def _open(self, cell_hash: bytes) -> tuple[CellTree, int, list[bytes]]:
        """Return a tree with one cell over empty ones, which stand for its children, and these."""
        body, children = self._fetch({cell_hash})[cell_hash]
        tree = CellTree()
        below = tuple(tree.append(_EMPTY_CELL) for _ in children)
        return tree, tree.append(body, below), children

    def _load(self, roots: set[bytes]) -> tuple[CellTree, dict[bytes, int]]:
        """Return a tree with cells and all below them, and the places of all by hash."""
        cells: Packed = {}
        keys = roots
        while keys:
            level = self._fetch(keys)
            cells |= level
            keys = {child for _, children in level.values() for child in children} - cells.keys()
        tree = CellTree()
        places: dict[bytes, int] = {}
        for root in sorted(roots):
            append_packed(tree, root, cells, places)
        return tree, places


def _open_node(node: Node, body: bytes, children: list[bytes]) -> list[Node]:
    """Return a leaf as such, or the two nodes below a fork, the right one first."""
    if body[0] & _EXOTIC_BIT:
        raise DecodeError(f"accounts: cell {node.cell.hex()} is exotic, so this is no whole state")
    key, left, _ = read_label(*read_bits(body), node.bits_left, node.key)
    if not left:
        return [node._replace(is_leaf=True)]
    if len(children) < _FORK_REFS:
        raise DecodeError(f"accounts: fork {node.cell.hex()} has {len(children)} references")
    zero, one = children[:_FORK_REFS]
    return [Node(one, key << 1 | 1, left - 1), Node(zero, key << 1, left - 1)]


def _take(rows: RowSet, *names: str) -> Tables:
    tables = rows.to_arrow()
    return {name: tables[name] for name in names}
