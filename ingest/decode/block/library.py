"""Public libraries of the masterchain: what a block's Merkle update changes.

TL-B: ShardStateUnsplit.libraries:(HashmapE 256 LibDescr), shared_lib_descr$00 lib:^Cell
publishers:(Hashmap 256 True).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.header import check_tag
from tonlake.ingest.decode.block.state import read_libraries, read_state, read_state_sides
from tonlake.ingest.decode.cell.dictionary import iter_hashmap_slice, load_label
from tonlake.ingest.decode.cell.exotic import PRUNED

if TYPE_CHECKING:
    from tonlake.ingest.decode.block.state import ShardState
    from tonlake.ingest.decode.cell.boc import CellTree
    from tonlake.ingest.decode.cell.slice import CellSlice

LibraryRow = tuple[int, bytes, bool, list[bytes]]
"""A row of the table ``libraries``."""

Entry = tuple[int, list[bytes]]
"""LibDescr: the library's root cell and its publishers."""

_KEY_BITS = 256


def read_library_changes(
    tree: CellTree, old: int, new: int, mc_seqno: int
) -> tuple[list[LibraryRow], list[int]]:
    """Compare the libraries on both sides of an update; return rows and the new library cells.

    What is pruned did not change. If the update prunes some publishers as unchanged, the row
    names the others.
    """
    state = read_state(tree, new)
    if tree.kind(state.totals) == PRUNED:
        return [], []
    after, nodes = _walk(tree, _find_root(tree, state), frozenset())
    sides = read_state_sides(tree, old)
    old_root = _find_root(tree, sides[0]) if sides else None
    before, _ = _walk(tree, old_root, frozenset())
    # A branch that the new side has too, shown or pruned, lost nothing.
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
    """Return the entries that are there and not under an ``unchanged`` node, and all node hashes.

    A node is met once: two places of one dictionary never hold equal nodes, since the key of an
    entry is the hash of its library.
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
    """Return the root of the libraries; None where there are none, or nothing of them is shown."""
    return None if tree.kind(state.totals) == PRUNED else read_libraries(tree, state)
