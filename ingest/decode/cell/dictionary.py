"""Reads TL-B dictionaries (``Hashmap n X``) in order of keys, and writes them as the node does."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import ORDINARY, PRUNED, CellTree
from tonlake.ingest.errors import BocError, CellUnderflow

_FORK_REFS = 2
_MAX_REPEATS = 10_000
"""Maximum steps of one walk to nodes it has visited before: equal subtrees share one cell, but a
few crafted cells could represent 2^256 keys."""


def iter_hashmap(
    tree: CellTree, root: int, key_bits: int, *, key: int = 0, skip_pruned: bool = False
) -> Iterator[tuple[int, CellSlice]]:
    """Yield key (unsigned) and a slice at the value, in ascending order of keys.

    If ``root`` is a node of a larger dictionary, ``key`` is the prefix before its label. In a leaf
    of HashmapAug the slice is at the augmentation, which precedes the value. Every node counts as
    one step; ``skip_pruned`` leaves out pruned branches. Far more keys than cells are a BocError.
    """
    return _walk(tree, [(root, key, key_bits)], skip_pruned=skip_pruned)


MAX_KEYS = 4096
"""Most keys of a dictionary of half the cells that a message can bring (ConfigParam 43)."""


def list_keys(tree: CellTree, root: int, key_bits: int) -> list[int]:
    """Return the keys of a dictionary; BocError for more than ``MAX_KEYS``, by shared cells."""
    keys = [key for key, _ in islice(iter_hashmap(tree, root, key_bits), MAX_KEYS + 1)]
    if len(keys) > MAX_KEYS:
        raise BocError(f"a hash map of more than {MAX_KEYS} keys")
    return keys


def iter_hashmap_slice(
    start: CellSlice, key_bits: int, *, skip_pruned: bool = False
) -> Iterator[tuple[int, CellSlice]]:
    """Walk a dictionary whose root node is inline at ``start``, which ends up behind it."""
    key, left = load_label(start, key_bits, 0)
    if not left:
        yield key, start
        return
    zero, one = start.load_ref(), start.load_ref()
    todo = [(one, key << 1 | 1, left - 1), (zero, key << 1, left - 1)]
    yield from _walk(start.tree, todo, skip_pruned=skip_pruned)


def find_leaf(tree: CellTree, root: int, key: int, key_bits: int) -> CellSlice | None:
    """Return a slice at the value of a key; None if the key is absent.

    In a proof the whole path to the key, or to where it would be, must be present, else BocError.
    """
    cell, left = root, key_bits
    while True:
        if tree.kind(cell) != ORDINARY:
            raise BocError(f"the path to key {key:x} of a hash map ends at an exotic cell")
        node = tree.slice(cell)
        label, rest = load_label(node, left, 0)
        if label != key >> rest & (1 << left - rest) - 1:
            return None
        if not rest:
            return node
        links = tree.links[cell]
        if len(links) < _FORK_REFS:
            raise CellUnderflow(f"hash map fork at cell {cell} has {len(links)} references")
        left = rest - 1
        cell = links[key >> left & 1]


def load_label(node: CellSlice, key_left: int, key: int) -> tuple[int, int]:
    """Read HmLabel from ``node``; return the key with the label appended, and its bits left."""
    value, left = node.bits()
    key, key_left, end = read_label(value, left, key_left, key)
    node.skip(left - end)
    return key, key_left


def read_label(value: int, left: int, key_left: int, key: int) -> tuple[int, int, int]:
    """Parse HmLabel in the last ``left`` bits of a cell; return key, its bits left, and the rest.

    hml_short$0 unary length, hml_long$10 and hml_same$11 with a length of bit_length(key_left)
    bits. A read past the end of the cell shifts by a negative count, which is a ValueError.
    """
    try:
        left -= 1
        if not value >> left & 1:
            length = 0
            left -= 1
            while value >> left & 1:
                length += 1
                left -= 1
            left -= length
            label = value >> left & ((1 << length) - 1)
        else:
            left -= 1
            is_same = value >> left & 1
            left -= is_same + key_left.bit_length()
            length = value >> left & ((1 << key_left.bit_length()) - 1)
            if is_same:
                label = -(value >> left + key_left.bit_length() & 1) & ((1 << length) - 1)
            else:
                left -= length
                label = value >> left & ((1 << length) - 1)
    except ValueError as error:
        raise CellUnderflow("a node of a hash map ends inside its label") from error
    if length > key_left:
        raise BocError(f"hash map label of {length} bits where {key_left} are left")
    return key << length | label, key_left - length, left


def _walk(
    tree: CellTree, todo: list[tuple[int, int, int]], *, skip_pruned: bool
) -> Iterator[tuple[int, CellSlice]]:
    """Walk the nodes of ``todo`` (cell, key so far, bits left), the last one first."""
    steps = tree.count + _MAX_REPEATS
    while todo:
        cell, key, key_left = todo.pop()
        steps -= 1
        if not steps:
            raise BocError(f"hash map at cell {cell} repeats its nodes too often")
        if skip_pruned and tree.kind(cell) == PRUNED:
            continue
        value, left = tree.bits(cell)
        key, key_left, left = read_label(value, left, key_left, key)
        if not key_left:
            yield key, CellSlice.at(tree, cell, value, left)
            continue
        children = tree.links[cell]
        if len(children) < _FORK_REFS:
            raise CellUnderflow(f"hash map fork at cell {cell} has {len(children)} references")
        zero, one = children[:2]
        todo += [(one, key << 1 | 1, key_left - 1), (zero, key << 1, key_left - 1)]


Entry = tuple[int, int]
"""Key, unsigned, and the value: the index of a cell, or whatever ``Store`` accepts."""

Store = Callable[[CellBuilder, int], object]
"""Stores a value after the label of a leaf."""


def build_hashmap(
    tree: CellTree, entries: Sequence[Entry], key_bits: int, store: Store = CellBuilder.store_ref
) -> int:
    """Append ``Hashmap n X`` to the tree that contains the values; return the index of its root.

    X is ``^Cell``, unless ``store`` writes values in another form. There must be entries, and their
    keys ascend and fit ``key_bits``, else BocError.
    """
    if not entries or any(left[0] >= right[0] for left, right in pairwise(entries)):
        raise BocError("a hash map needs entries with ascending keys")
    if entries[0][0] < 0 or entries[-1][0] >> key_bits:
        raise BocError(f"a key of the hash map does not fit {key_bits} bits")
    return _build_node(tree, entries, key_bits, store)


def _build_node(tree: CellTree, entries: Sequence[Entry], left: int, store: Store) -> int:
    """Append the node of entries whose keys agree in all but the last ``left`` bits."""
    first, last = entries[0][0], entries[-1][0]
    rest = (first ^ last).bit_length()
    length = left - rest
    node = CellBuilder(tree)
    node.store_uint(*write_label(first >> rest & (1 << length) - 1, length, left))
    if not rest:
        store(node, entries[0][1])
        return node.end()
    fork = last >> rest - 1 << rest - 1
    middle = next(at for at, entry in enumerate(entries) if entry[0] >= fork)
    node.store_ref(_build_node(tree, entries[:middle], rest - 1, store))
    node.store_ref(_build_node(tree, entries[middle:], rest - 1, store))
    return node.end()


def write_label(label: int, length: int, left: int) -> tuple[int, int]:
    """Return HmLabel and its size in bits: the shortest form, of two the simpler constructor.

    hml_short$0 unary length, hml_long$10 and hml_same$11 with a length of bit_length(left) bits;
    the choice is that of the node's ``append_dict_label``.
    """
    size = left.bit_length()
    same = length > 1 and label in (0, (1 << length) - 1)
    if same and size < 2 * length - 1:
        return (0b110 | label & 1) << size | length, 3 + size
    if size < length:
        return (0b10 << size | length) << length | label, 2 + size + length
    return (1 << length + 1) - 2 << length | label, 2 + 2 * length
