"""Hash maps of TL-B (``Hashmap n X``), walked from left to right without recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.cell.exotic import PRUNED
from ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ingest.cell.slice import CellSlice
    from ingest.cell.tree import CellTree

_MAX_REPEATS = 10_000
"""Steps that one walk may make on nodes it has met before: equal sub-trees share one cell, but a
few crafted cells could stand for 2^256 keys."""


def iter_hashmap(
    tree: CellTree, root: int, key_bits: int, *, skip_pruned: bool = False
) -> Iterator[tuple[int, CellSlice]]:
    """Yield key (unsigned) and a slice at the value, in ascending order of keys.

    In a leaf of HashmapAug the slice stands at the augmentation, which comes before the value.
    Every node costs one step; ``skip_pruned`` leaves out branches that were pruned.

    Raises:
        BocError: a label longer than the key, a node too short, an exotic cell, or far more keys
            than cells.
    """
    yield from _walk(tree, [(root, 0, key_bits)], skip_pruned=skip_pruned)


def iter_hashmap_slice(
    start: CellSlice, key_bits: int, *, skip_pruned: bool = False
) -> Iterator[tuple[int, CellSlice]]:
    """Walk a map whose root node stands inline at ``start``, which is used up.

    A root that is a fork leaves ``start`` behind its two references, where what follows the map
    (or its augmentation) begins.
    """
    key, left = load_label(start, key_bits, 0)
    if not left:
        yield key, start
        return
    zero, one = start.load_ref(), start.load_ref()
    todo = [(one, key << 1 | 1, left - 1), (zero, key << 1, left - 1)]
    yield from _walk(start.tree, todo, skip_pruned=skip_pruned)


def load_label(node: CellSlice, left: int, key: int) -> tuple[int, int]:
    """Read HmLabel; return the key with the label appended and the key bits still left.

    hml_short$0 unary length, hml_long$10 and hml_same$11 with a length of bit_length(left) bits.
    """
    if not node.load_bit():
        length = 0
        while node.load_bit():
            length += 1
        _check_label(length, left)
        label = node.load_uint(length)
    elif not node.load_bit():
        length = node.load_uint(left.bit_length())
        _check_label(length, left)
        label = node.load_uint(length)
    else:
        bit = node.load_bit()
        length = node.load_uint(left.bit_length())
        _check_label(length, left)
        label = (1 << length) - 1 if bit else 0
    return key << length | label, left - length


def _check_label(length: int, left: int) -> None:
    """Refuse a label that is longer than what is left of the key."""
    if length > left:
        raise BocError(f"hash map label of {length} bits where {left} are left")


def _walk(
    tree: CellTree, todo: list[tuple[int, int, int]], *, skip_pruned: bool
) -> Iterator[tuple[int, CellSlice]]:
    """Walk the nodes of ``todo`` (cell, key so far, bits left), the last one first."""
    steps = tree.count + _MAX_REPEATS
    while todo:
        cell, key, left = todo.pop()
        steps -= 1
        if not steps:
            raise BocError(f"hash map at cell {cell} repeats its nodes too often")
        if skip_pruned and tree.kind(cell) == PRUNED:
            continue
        node = tree.slice(cell)
        key, left = load_label(node, left, key)
        if not left:
            yield key, node
            continue
        zero, one = node.load_ref(), node.load_ref()
        todo.append((one, key << 1 | 1, left - 1))
        todo.append((zero, key << 1, left - 1))
