"""Writing hash maps of TL-B (``Hashmap n ^X``) in the one form that the node gives them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.tree import CellTree

Entry = tuple[int, int]
"""Key, unsigned, and the value: the index of a cell, or what ``Store`` takes."""

Store = Callable[[CellBuilder, int], object]
"""Stores a value behind the label of a leaf."""


def build_hashmap(
    tree: CellTree, entries: Sequence[Entry], key_bits: int, store: Store = CellBuilder.store_ref
) -> int:
    """Append ``Hashmap n X`` with these entries to the tree that holds the values.

    X is ``^Cell``, unless ``store`` writes values in another form.

    Returns:
        The index of the root node.

    Raises:
        BocError: no entry, keys that do not ascend, or a key longer than ``key_bits``.
    """
    if not entries or any(left[0] >= right[0] for left, right in pairwise(entries)):
        raise BocError("a hash map needs entries with ascending keys")
    if entries[0][0] < 0 or entries[-1][0] >> key_bits:
        raise BocError(f"a key of the hash map does not fit {key_bits} bits")
    return _build_node(tree, entries, key_bits, store)


def _build_node(tree: CellTree, entries: Sequence[Entry], left: int, store: Store) -> int:
    """Append the node over entries that agree in all but the last ``left`` bits of their keys."""
    first, last = entries[0][0], entries[-1][0]
    rest = (first ^ last).bit_length()
    length = left - rest
    node = CellBuilder(tree)
    store_label(node, first >> rest & (1 << length) - 1, length, left)
    if not rest:
        store(node, entries[0][1])
        return node.end()
    fork = last >> rest - 1 << rest - 1
    middle = next(at for at, entry in enumerate(entries) if entry[0] >= fork)
    node.store_ref(_build_node(tree, entries[:middle], rest - 1, store))
    node.store_ref(_build_node(tree, entries[middle:], rest - 1, store))
    return node.end()


def store_label(node: CellBuilder, label: int, length: int, left: int) -> None:
    """Store HmLabel in its shortest form, the shorter constructor where two are equal.

    hml_short$0 unary length, hml_long$10 and hml_same$11 with a length of bit_length(left) bits;
    the choice is that of ``append_dict_label`` of the node.
    """
    size = left.bit_length()
    same = length > 1 and label in (0, (1 << length) - 1)
    if same and size < 2 * length - 1:
        node.store_uint(0b11, 2).store_bit(label & 1).store_uint(length, size)
    elif size < length:
        node.store_uint(0b10, 2).store_uint(length, size).store_uint(label, length)
    else:
        node.store_uint((1 << length + 1) - 2, length + 2).store_uint(label, length)
