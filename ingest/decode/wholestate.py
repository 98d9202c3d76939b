"""Reads whole shard states: zero states, and later ones branch by branch from a store of cells.

TL-B: ShardStateUnsplit, ShardAccounts = HashmapAugE 256 ShardAccount DepthBalanceInfo. The accounts
of a store are split into branches of their dictionary; any process can decode one, and only one is
in memory.
"""

from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec
import pyarrow as pa

from tonlake.ingest.blocks import ZeroState
from tonlake.ingest.decode.block.block import read_params
from tonlake.ingest.decode.block.state import (
    ACCOUNT_BITS,
    CellAt,
    ShardAccount,
    StateAt,
    StateCells,
    Touched,
    iter_shard_accounts,
    load_leaf,
    make_row,
    read_account,
    read_all_libraries,
    read_config,
    read_libraries,
    read_state,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap, read_label
from tonlake.ingest.decode.cell.packed import (
    HASH_BYTES,
    Loaded,
    PackedCells,
    append_packed,
    naming,
    split_packed,
)
from tonlake.ingest.decode.cell.slice import EXOTIC_BIT
from tonlake.ingest.decode.cell.tree import PRUNED, CellTree, read_bits
from tonlake.ingest.decode.native import decode_branch
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.errors import BlockCorrupt, DecodeError
from tonlake.lake.schema import ACCOUNT_STATES, CONFIG_PARAMS, LIBRARIES, STATE_CELLS

TABLES = ("account_states", "state_cells", "config_params", "libraries")
"""The tables filled from a complete state."""


def decode_zero_states(states: Sequence[ZeroState]) -> dict[str, pa.Table]:
    """Decode zero states to rows with ``mc_seqno`` 0."""
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
    cells = StateCells(rows["state_cells"])
    for tree in trees:
        if tree.level_mask(tree.roots[0]):
            raise DecodeError("shard state: parts of it are pruned, so it is incomplete")
        _read_rows(tree, mc_seqno, rows, cells)
    tables = rows.to_arrow()
    return {name: tables[name] for name in TABLES}


def _read_rows(tree: CellTree, mc_seqno: int, rows: RowSet, cells: StateCells) -> None:
    shard = read_state(tree, tree.roots[0])
    at = StateAt(shard.workchain, shard.shard, shard.seqno, mc_seqno, shard.gen_utime)
    _count, roots = _add_accounts(tree, iter_shard_accounts(tree, shard.accounts), at, rows)
    libraries = read_all_libraries(tree, read_libraries(tree, shard), mc_seqno)
    rows["libraries"].extend([row for row, _ in libraries])
    roots += [(library, 0) for _, library in libraries]
    config = read_config(tree, shard)
    if config is not None:
        rows["config_params"].extend(read_params(tree, config, mc_seqno, shard.gen_utime))
    cells.keep(tree, roots, mc_seqno)


Tables = dict[str, "pa.Table"]

BRANCH_ACCOUNTS = 32_768
"""Most accounts of a branch, estimated: 5 to 7 cells each, about 100 MB."""

MAX_CELLS = 600_000
"""Most cells in memory at a time: a branch with more is read in parts."""

_SAMPLED = 64
"""Number of nodes sampled to estimate the number of accounts."""

_SHALLOWER = 1 / 3
"""The first leaf of n random keys is log2(n) forks deep on average, minus this."""

_EMPTY_CELL = bytes(2)
_FORK_REFS = 2


class Branch(NamedTuple):
    """A subtree of ShardAccounts: its root cell, the key before its label, and the bits left."""

    cell: bytes
    key: int = 0
    bits_left: int = ACCOUNT_BITS

    @property
    def ends(self) -> tuple[bytes, bytes]:
        """The first and the last account id that it may contain."""
        first = self.key << self.bits_left
        last = first | (1 << self.bits_left) - 1
        return first.to_bytes(HASH_BYTES, "big"), last.to_bytes(HASH_BYTES, "big")


class WholeState:
    """The top of a shard state; methods raise SourceError, and IngestError for bad cells."""

    def __init__(self, store: PackedCells, root: bytes) -> None:
        """Read the root cell, whose handle is ``root``."""
        self._store = store
        tree, cell, children = self._open(root)
        self._top = read_state(tree, cell)
        self._children = children
        self.workchain, self.shard = self._top.workchain, self._top.shard

    def describe(self, mc_seqno: int) -> StateAt:
        """Return the block that the state follows, for rows with ``mc_seqno``."""
        top = self._top
        return StateAt(top.workchain, top.shard, top.seqno, mc_seqno, top.gen_utime)

    def find_accounts(self) -> Branch | None:
        """Return all accounts as one branch; None if there are none."""
        tree, root, children = self._open(self._children[self._top.accounts])
        dictionary = tree.slice(root).load_maybe_ref()
        return None if dictionary is None else Branch(children[dictionary])

    def decode_libraries(self, mc_seqno: int, skip: Collection[bytes]) -> Tables:
        """Decode the public libraries not in ``skip``: ``libraries`` and ``state_cells``."""
        totals, root, children = self._open(self._children[self._top.totals])
        held = read_libraries(totals, msgspec.structs.replace(self._top, totals=root))
        rows = RowSet()
        if held is not None:
            tree, places = _build(Loaded(self._store, [children[held]]))
            libraries = [
                (row, cell)
                for row, cell in read_all_libraries(tree, places[children[held]], mc_seqno)
                if row[1] not in skip
            ]
            rows[LIBRARIES.name].extend([row for row, _ in libraries])
            roots = [(cell, 0) for _, cell in libraries]
            StateCells(rows[STATE_CELLS.name]).keep(tree, roots, mc_seqno)
        return _take(rows, LIBRARIES.name, STATE_CELLS.name)

    def decode_config(self, key_seqno: int) -> Tables:
        """Decode the configuration of key block ``key_seqno``; empty for a shard state."""
        rows = RowSet()
        if self._top.custom is not None:
            custom, root, children = self._open(self._children[self._top.custom])
            held = read_config(custom, msgspec.structs.replace(self._top, custom=root))
            if held is not None:
                tree, places = _build(Loaded(self._store, [children[held]]))
                params = read_params(tree, places[children[held]], key_seqno, self._top.gen_utime)
                rows[CONFIG_PARAMS.name].extend(params)
        return _take(rows, CONFIG_PARAMS.name)

    def _open(self, handle: bytes) -> tuple[CellTree, int, list[bytes]]:
        """Return a tree of a cell over empty placeholders, the cell, and its children's handles."""
        (packed,) = self._store.fetch([handle])
        body, children = split_packed(packed, self._store.width)
        if body[0] & EXOTIC_BIT:
            raise DecodeError(f"cell {handle.hex()} is exotic, so the state is incomplete")
        tree = CellTree()
        below = tuple(tree.append(_EMPTY_CELL) for _ in children)
        return tree, tree.append(bytes((body[0] & 0x1F,)) + body[1:], below), children


def cut_branches(store: PackedCells, root: Branch) -> list[Branch]:
    """Split a branch into smaller ones of about ``BRANCH_ACCOUNTS`` accounts at most, in order."""
    levels = [[root]]
    while len(levels[-1]) < _SAMPLED:
        below = _open_forks(store, levels[-1])
        if below == levels[-1]:  # leaves alone
            return [root]
        levels.append(below)
    accounts = _estimate_accounts(store, levels[-1])
    while len(levels[-1]) * BRANCH_ACCOUNTS < accounts:
        levels.append(_open_forks(store, levels[-1]))
    return next(level for level in levels if len(level) * BRANCH_ACCOUNTS >= accounts)


def list_pruned(store: PackedCells, root: Branch) -> tuple[list[Branch], list[Branch]]:
    """Return the pruned branches of an incomplete state, and its own leaves."""
    pruned: list[Branch] = []
    level = [root]
    while True:
        packed = store.fetch([each.cell for each in level])
        found = {
            each.cell
            for each, cell in zip(level, packed, strict=True)
            if cell[0] & EXOTIC_BIT and cell[2] == PRUNED
        }
        pruned += [each for each in level if each.cell in found]
        rest = [each for each in level if each.cell not in found]
        level = _open_forks(store, rest)
        if level == rest:
            return sorted(pruned, key=lambda each: each.ends), rest


def load_branch(store: PackedCells, branch: Branch) -> Iterator[tuple[Branch, Loaded]]:
    """Yield a branch with its cells; split it, in order, if it exceeds ``MAX_CELLS``."""
    todo = [branch]
    while todo:
        each = todo.pop()
        loaded = Loaded(store, [each.cell], MAX_CELLS)
        if not loaded.is_whole:
            below = _open_forks(store, [each])
            if below != [each]:
                todo += reversed(below)
                continue
            loaded = Loaded(store, [each.cell])  # one account
        yield each, loaded


def decode_accounts(
    branch: Branch, loaded: Loaded, at: StateAt, skip: Collection[bytes], *, only_active: bool
) -> tuple[int, Tables]:
    """Return the number of accounts and their rows; those to ``skip`` get only cells."""
    block, key, left = msgspec.structs.astuple(at), branch.key, branch.bits_left
    found = decode_branch(loaded, key, left, block, skip, only_active=only_active)
    if found is not None:
        return found
    first, last = (each.hex() for each in branch.ends)
    with naming(f"{loaded.name}: accounts {at.workchain}:{first} to {last}"):
        return _decode_slowly(branch, loaded, at, skip, only_active=only_active)


def _decode_slowly(
    branch: Branch, loaded: Loaded, at: StateAt, skip: Collection[bytes], *, only_active: bool
) -> tuple[int, Tables]:
    tree, places = _build(loaded)
    rows = RowSet()
    leaves = iter_hashmap(tree, places[branch.cell], branch.bits_left, key=branch.key)
    entries = (load_leaf(key, leaf) for key, leaf in leaves)
    count, roots = _add_accounts(tree, entries, at, rows, skip, only_active=only_active)
    pruned = StateCells(rows[STATE_CELLS.name]).keep(tree, roots, at.mc_seqno)
    if pruned:
        raise DecodeError(f"accounts: the state is incomplete: cell {min(pruned).hex()} is pruned")
    return count, _take(rows, ACCOUNT_STATES.name, STATE_CELLS.name)


def _add_accounts(
    tree: CellTree,
    entries: Iterator[ShardAccount],
    at: StateAt,
    rows: RowSet,
    skip: Collection[bytes] = (),
    *,
    only_active: bool = False,
) -> tuple[int, list[CellAt]]:
    """Add rows of ``account_states``; return the number of accounts, and those with cells."""
    roots: list[CellAt] = []
    count = 0
    for count, entry in enumerate(entries, 1):  # noqa: B007 - the last one is the number
        account = read_account(tree, entry.cell)
        if only_active and account.account_status != "active":
            continue
        roots.append((entry.cell, 0))
        if entry.account not in skip:
            last = entry.last_trans_lt, entry.last_trans_hash
            touched = Touched(entry.account, *last, tree.hash(entry.cell))
            rows[ACCOUNT_STATES.name].append(make_row(tree, at, touched, account))
    return count, roots


def _build(loaded: Loaded) -> tuple[CellTree, dict[bytes, int]]:
    tree = CellTree()
    places: dict[bytes, int] = {}
    cells = loaded.unpack()
    for handle in loaded.handles:
        append_packed(tree, handle, cells, places, by_hash=loaded.width == HASH_BYTES)
    return tree, places


def _estimate_accounts(store: PackedCells, level: Sequence[Branch]) -> float:
    """Estimate the accounts below ``level`` by the depth of the first leaf in sampled nodes."""
    step = len(level) // _SAMPLED
    sample = [level[at * step] for at in range(_SAMPLED)]
    depths = [0] * _SAMPLED
    while True:
        below = [_open_forks(store, [each]) for each in sample]
        if all(len(each) == 1 for each in below):
            break
        depths = [depth + (len(each) > 1) for depth, each in zip(depths, below, strict=True)]
        sample = [each[0] for each in below]
    return len(level) * float(2 ** (sum(depths) / _SAMPLED + _SHALLOWER))


def _open_forks(store: PackedCells, level: Sequence[Branch]) -> list[Branch]:
    """Return the children of forks, in order; leaves stay."""
    packed = store.fetch([each.cell for each in level])
    with naming(store.name):
        return [
            below
            for each, cell in zip(level, packed, strict=True)
            for below in _open_node(each, cell, store.width)
        ]


def _open_node(node: Branch, packed: bytes, width: int) -> list[Branch]:
    body, children = split_packed(packed, width)
    if body[0] & EXOTIC_BIT:
        raise DecodeError(f"accounts: cell {node.cell.hex()} is exotic, so the state is incomplete")
    key, left, _ = read_label(*read_bits(body), node.bits_left, node.key)
    if not left:
        return [node]
    if len(children) < _FORK_REFS:
        raise DecodeError(f"accounts: fork {node.cell.hex()} has {len(children)} references")
    zero, one = children[:_FORK_REFS]
    return [Branch(zero, key << 1, left - 1), Branch(one, key << 1 | 1, left - 1)]


def _take(rows: RowSet, *names: str) -> Tables:
    tables = rows.to_arrow()
    return {name: tables[name] for name in names if tables[name].num_rows}
