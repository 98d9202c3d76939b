"""Decodes a block's Merkle update to rows: touched account states, library changes, new cells.

TL-B: !merkle_update#04 old_hash new_hash old_depth new_depth ^old ^new;
ShardStateUnsplit.libraries:(HashmapE 256 LibDescr), shared_lib_descr$00 lib:^Cell
publishers:(Hashmap 256 True). The new side contains every cell that is new in the state. Other
cells are pruned branches, which an earlier update or the zero state contains, with one exception
that ``_find_carried`` handles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.account import (
    NONEXIST,
    NONEXIST_HASH,
    StateAt,
    Touched,
    make_row,
    read_account,
)
from tonlake.ingest.decode.block.header import check_tag, read_parts
from tonlake.ingest.decode.block.state import (
    find_accounts,
    iter_cells,
    iter_depths,
    read_libraries,
    read_state,
    read_state_sides,
)
from tonlake.ingest.decode.cell.dictionary import iter_hashmap_slice, load_label
from tonlake.ingest.decode.cell.exotic import PRUNED
from tonlake.ingest.decode.cell.tree import MAX_LEVEL
from tonlake.ingest.errors import DecodeError
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.block.account import AccountRow
    from tonlake.ingest.decode.block.header import BlockHeader
    from tonlake.ingest.decode.block.state import CellAt, ShardState, StateCells
    from tonlake.ingest.decode.cell.boc import CellTree
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.rows import RowSet


def decode_update(
    tree: CellTree,
    header: BlockHeader,
    mc_seqno: int,
    touched: Sequence[Touched],
    rows: RowSet,
    cells: StateCells,
) -> None:
    """Add the changes of one block to ``account_states``, ``libraries`` and ``cells``.

    ``touched`` lists every account with transactions in the block. Libraries are only read from
    masterchain blocks.

    Raises:
        DecodeError: a touched account's state is not in the update, or does not follow TL-B.
        BocError: a cell ends too early, or hashes do not match.
    """
    parts = read_parts(tree)
    old, new = tree.refs(parts.state_update)
    at = StateAt(header.workchain, header.shard, header.seqno, mc_seqno, header.gen_utime)
    states, roots = _read_accounts(tree, new, at, touched, header.gen_software_version)
    rows.table("account_states").extend(states)
    if header.workchain == MASTERCHAIN:
        libraries, contents = read_library_changes(tree, old, new, mc_seqno)
        rows.table("libraries").extend(libraries)
        roots += contents
    pruned = cells.keep(tree, [(root, 0) for root in roots], mc_seqno)
    if pruned:
        cells.keep(tree, _find_carried(tree, old, parts.extra, pruned), mc_seqno)


def _read_accounts(
    tree: CellTree,
    new: int,
    at: StateAt,
    touched: Sequence[Touched],
    global_version: int | None,
) -> tuple[list[AccountRow], list[int]]:
    rows: list[AccountRow] = []
    roots: list[int] = []
    entries = find_accounts(tree, read_state(tree, new).accounts) if touched else {}
    keys = [int.from_bytes(one.account, "big") for one in touched]
    tree.hash_all([entries[key] for key in keys if key in entries])
    for key, one in zip(keys, touched, strict=True):
        state = NONEXIST
        if one.new_hash != NONEXIST_HASH:
            cell = entries.get(key)
            if cell is None or tree.hash(cell, 0) != one.new_hash:
                raise DecodeError(
                    f"state update: account {at.workchain}:{one.account.hex()} has state "
                    f"{one.new_hash.hex()} after block {at.block_seqno}, but the update has "
                    f"{'none' if cell is None else tree.hash(cell, 0).hex()}"
                )
            state = read_account(tree, cell, global_version=global_version)
            roots.append(cell)
        rows.append(make_row(tree, at, one, state))
    return rows, roots


def _find_carried(tree: CellTree, old: int, extra: int, pruned: set[bytes]) -> list[CellAt]:
    """Find pruned cells new to accounts: parts of messages that were waiting in the queue.

    The node prunes whatever the old state contains anywhere, including the shard's own queue; the
    block's extra has the complete message.
    """
    accounts = [(state.accounts, 0) for state in read_state_sides(tree, old)]
    sides = list(iter_depths(tree, accounts))
    # Most are pruned there, too; their hashes need not be computed.
    missing = set(pruned)
    for depth, cells in sides:
        leaves = [cell for cell in cells if not tree.links[cell]]
        missing.difference_update([tree.pruned_hash(leaf, depth) for leaf in leaves])
    if missing:
        missing -= {tree.hash(cell, depth) for depth, cells in sides for cell in cells}
    if not missing:
        return []
    # In the extra the update prunes nothing: a cell has no levels but its own.
    return [
        (cell, MAX_LEVEL)
        for cell, _ in iter_cells(tree, [(extra, 0)])
        if tree.hash(cell) in missing and tree.kind(cell) != PRUNED
    ]


LibraryRow = tuple[int, bytes, bool, list[bytes]]
"""A row of the table ``libraries``."""

Entry = tuple[int, list[bytes]]
"""LibDescr: the library's root cell and its publishers."""

_KEY_BITS = 256


def read_library_changes(
    tree: CellTree, old: int, new: int, mc_seqno: int
) -> tuple[list[LibraryRow], list[int]]:
    """Compare the libraries on both sides of an update; return rows and the new library cells.

    Pruned libraries did not change. If the update prunes some publishers as unchanged, the row
    has only the others.
    """
    state = read_state(tree, new)
    if tree.kind(state.totals) == PRUNED:
        return [], []
    after, nodes = _walk(tree, _find_root(tree, state), frozenset())
    sides = read_state_sides(tree, old)
    old_root = _find_root(tree, sides[0]) if sides else None
    before, _ = _walk(tree, old_root, frozenset())
    # A branch that is also on the new side, pruned or not, lost nothing.
    replaced, _ = _walk(tree, old_root, nodes)
    rows, contents = [], []
    for key, (library, publishers) in after.items():
        if key not in before or _describe(tree, before[key]) != _describe(tree, after[key]):
            rows.append((mc_seqno, key, True, publishers))
            contents.append(library)
    rows += [(mc_seqno, key, False, []) for key in replaced if key not in after]
    return rows, contents


def read_all_libraries(
    tree: CellTree, root: int | None, mc_seqno: int
) -> list[tuple[LibraryRow, int]]:
    """Return a row and the library's cell for every entry of a complete dictionary."""
    entries, _ = _walk(tree, root, frozenset())
    return [
        ((mc_seqno, key, True, publishers), library)
        for key, (library, publishers) in entries.items()
    ]


def _walk(
    tree: CellTree, root: int | None, unchanged: frozenset[bytes]
) -> tuple[dict[bytes, Entry], frozenset[bytes]]:
    """Return the entries present and not under an ``unchanged`` node, and all node hashes.

    A node is visited once: one dictionary never contains equal nodes in two places, since the key
    of an entry is the hash of its library.
    """
    entries: dict[bytes, Entry] = {}
    met: set[bytes] = set()
    todo = [] if root is None else [(root, 0, _KEY_BITS)]
    while todo:
        cell, key, left = todo.pop()
        node_hash = tree.hash(cell, 0)
        if node_hash in met or node_hash in unchanged:
            continue
        met.add(node_hash)
        if tree.kind(cell) == PRUNED:
            continue
        node = tree.slice(cell)
        key, left = load_label(node, left, key)
        if not left:
            entries[key.to_bytes(32, "big")] = _read_entry(node)
            continue
        zero, one = node.load_ref(), node.load_ref()
        todo += [(one, key << 1 | 1, left - 1), (zero, key << 1, left - 1)]
    return entries, frozenset(met)


def _read_entry(node: CellSlice) -> Entry:
    check_tag(node, 2, 0, "library description")
    library = node.load_ref()
    publishers = iter_hashmap_slice(node, _KEY_BITS, skip_pruned=True)
    return library, [publisher.to_bytes(32, "big") for publisher, _ in publishers]


def _describe(tree: CellTree, entry: Entry) -> tuple[bytes, list[bytes]]:
    return tree.hash(entry[0], 0), entry[1]


def _find_root(tree: CellTree, state: ShardState) -> int | None:
    """Return the root of the libraries; None if there are none or they are pruned."""
    return None if tree.kind(state.totals) == PRUNED else read_libraries(tree, state)
