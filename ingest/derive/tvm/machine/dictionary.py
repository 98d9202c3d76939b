"""Dictionaries of the machine: HashmapE and PfxHashmapE, with the gas of each cell they touch.

A key is a number of ``left`` bits. A change loads the path from the root, then rebuilds it from
the bottom up; both cost gas in the order of ``crypto/vm/dict.cpp``. In prefix dictionaries a tag
follows the label: leaf$0 and a value, or fork$1 and two children. There a key has its ``size``.
"""

from typing import NamedTuple

from tonlake.ingest.decode.cell.dictionary import read_label, write_label
from tonlake.ingest.derive.tvm.machine.cell import Builder, Cell, Slice
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.state import Machine
from tonlake.ingest.errors import BocError

Content = tuple[int, int, tuple[Cell, ...]]
"""Bits as a number, their count, and references."""
SET, REPLACE, ADD = "set", "replace", "add"
_FORK_REFS = 2
_NOTHING: Content = (0, 0, ())
_LEAF: Content = (0, 1, ())
_FORK: Content = (1, 1, ())


class DictionaryNode(NamedTuple):
    """A node: the label as a number, its length, and what follows it."""

    label: int
    length: int
    rest: Slice


def parse_label(part: Slice, left: int) -> DictionaryNode:
    """Read the label of a node with ``left`` key bits below (HmLabel); raise VmError."""
    try:
        label, below, bits_left = read_label(part.uint(), part.bits, left, 0)
    except BocError as error:
        raise VmError(Exit.CELL_UNDERFLOW) from error
    return DictionaryNode(label, left - below, part.skip(part.bits - bits_left))


def load_node(machine: Machine, cell: Cell, left: int) -> DictionaryNode:
    """Load a node of a dictionary and check the shape of a fork."""
    node = parse_label(machine.load(cell), left)
    if node.length < left and (node.rest.bits or node.rest.ref_count != _FORK_REFS):
        raise VmError(Exit.DICTIONARY_ERROR)
    return node


def store_label(label: int, length: int, left: int) -> Builder:
    """Return a builder with a label."""
    return Builder().store(*write_label(label, length, left))


def _common(one: int, one_bits: int, other: int, other_bits: int) -> int:
    """Return how many leading bits two numbers of these lengths share."""
    bits = min(one_bits, other_bits)
    return bits - (one >> one_bits - bits ^ other >> other_bits - bits).bit_length()


def _low(value: int, bits: int) -> int:
    return value & (1 << bits) - 1


def find_value(machine: Machine, root: Cell | None, key: int, bits: int) -> Slice | None:
    """Return the value of a key; None if it is absent."""
    if root is None:
        return None
    cell, left = root, bits
    while True:
        node = load_node(machine, cell, left)
        rest = left - node.length
        if node.label != _low(key, left) >> rest:
            return None
        if not rest:
            return node.rest
        left = rest - 1
        cell = node.rest.child(key >> left & 1)


class DictionaryStep(NamedTuple):
    """A fork on the path to a key: its label, key bits below it, the side taken, both children."""

    label: int
    length: int
    left: int
    side: int
    children: tuple[Cell, ...]


class Path(NamedTuple):
    """The way to a key: forks from the root down, and the last node (None: empty).

    ``left`` and ``done`` are the bits of keys below it and above it, ``shared`` the number of bits
    that its label shares with the key.
    """

    steps: list[DictionaryStep]
    node: DictionaryNode | None
    left: int
    shared: int
    is_fork: bool = False
    done: int = 0


def _descend(machine: Machine, root: Cell | None, key: int, bits: int, size: int | None) -> Path:
    """Follow a key until a leaf, a difference, or its end.

    The tag of a node whose label differs from the key is not read.
    """
    steps: list[DictionaryStep] = []
    cell, done = root, 0
    while cell is not None:
        left, rest = bits - done, (bits if size is None else size) - done
        node = _load_either(machine, cell, left, size)
        shared = _common(node.label, node.length, _low(key, rest), rest)
        if shared < node.length:
            return Path(steps, node, left, shared, done=done)
        is_fork = node.length < left
        if size is not None:
            node, is_fork = _read_tag(node, left)
        if not is_fork or rest == node.length:
            return Path(steps, node, left, shared, is_fork, done)
        done += node.length + 1
        side = key >> rest - node.length - 1 & 1
        steps.append(DictionaryStep(node.label, node.length, left, side, node.rest.refs))
        cell = node.rest.refs[side]
    return Path(steps, None, bits, 0)


def _load_either(machine: Machine, cell: Cell, left: int, size: int | None) -> DictionaryNode:
    return load_node(machine, cell, left) if size is None else parse_label(machine.load(cell), left)


def _rebuild(machine: Machine, steps: list[DictionaryStep], cell: Cell, size: int | None) -> Cell:
    """Rebuild the forks above a changed node."""
    head = _NOTHING if size is None else _FORK
    for each in reversed(steps):
        pair = (each.children[0], cell) if each.side else (cell, each.children[1])
        label = store_label(each.label, each.length, each.left)
        cell = machine.finish(label.store(*head).store(0, 0, pair))
    return cell


def _make_node(machine: Machine, label: int, length: int, left: int, *parts: Content) -> Cell:
    builder = store_label(label, length, left)
    for part in parts:
        builder = builder.store(*part)
    return machine.finish(builder)


def set_value(
    machine: Machine,
    root: Cell | None,
    key: int,
    bits: int,
    value: Content,
    mode: str,
    size: int | None = None,
) -> tuple[Cell | None, Slice | None, bool]:
    """Return the dictionary with a key set, its old value, and whether it has changed."""
    path = _descend(machine, root, key, bits, size)
    rest, node = (bits if size is None else size) - path.done, path.node
    leaf = _NOTHING if size is None else _LEAF
    if node is None:
        is_set = mode != REPLACE
        return (_make_node(machine, key, rest, bits, leaf, value) if is_set else root), None, is_set
    old = None
    if path.shared < node.length:
        if mode == REPLACE or path.shared == rest:
            return root, None, False
        made = _split(machine, path, key, rest, value, size)
    elif path.is_fork or node.length != rest:
        return root, None, False
    elif mode == ADD:
        return root, node.rest, False
    else:
        old = node.rest
        made = _make_node(machine, node.label, node.length, path.left, leaf, value)
    return _rebuild(machine, path.steps, made, size), old, True


def _split(
    machine: Machine, path: Path, key: int, rest: int, value: Content, size: int | None
) -> Cell:
    """Put a fork into the edge to the last node of a path to an absent key of ``rest`` bits."""
    node, left, shared = path.node, path.left, path.shared
    assert node is not None  # noqa: S101 - only the last node of a path to an absent key
    below, kept = left - shared - 1, node.length - shared - 1
    own = rest - shared - 1
    leaf_head, fork_head = (_NOTHING, _NOTHING) if size is None else (_LEAF, _FORK)
    leaf = _make_node(machine, _low(key, own), own, below, leaf_head, value)
    old = _make_node(machine, _low(node.label, kept), kept, below, read_content(node.rest))
    pair = (old, leaf) if key >> own & 1 else (leaf, old)
    label = _low(key, rest) >> rest - shared
    return _make_node(machine, label, shared, left, fork_head, (0, 0, pair))


def read_content(part: Slice) -> Content:
    """Return what a slice contains."""
    return part.uint(), part.bits, part.refs


def delete_value(
    machine: Machine, root: Cell | None, key: int, bits: int, size: int | None = None
) -> tuple[Cell | None, Slice | None]:
    """Return the dictionary without a key, and the value that it had; None if it was absent."""
    path = _descend(machine, root, key, bits, size)
    node, rest = path.node, (bits if size is None else size) - path.done
    if node is None or path.shared < node.length or path.is_fork or node.length != rest:
        return root, None
    if not path.steps:
        return None, node.rest
    *steps, last = path.steps
    below = last.left - last.length - 1
    made = _join(machine, last, _load_either(machine, last.children[1 - last.side], below, size))
    return _rebuild(machine, steps, made, size), node.rest


def _join(machine: Machine, fork: DictionaryStep, other: DictionaryNode) -> Cell:
    """Build one edge of a fork and the only child that is left."""
    label = (fork.label << 1 | 1 - fork.side) << other.length | other.label
    length = fork.length + 1 + other.length
    return _make_node(machine, label, length, fork.left, read_content(other.rest))


def find_extreme(
    machine: Machine,
    root: Cell | None,
    bits: int,
    *,
    last: bool,
    signed: bool,
    key: int = 0,
    left: int | None = None,
) -> tuple[int, Slice] | None:
    """Return the first or last key with its value; None if the dictionary is empty.

    ``root`` may be a node with ``left`` bits of keys below it; those above are ``key``.
    """
    cell, left = root, bits if left is None else left
    while cell is not None:
        node = load_node(machine, cell, left)
        key = key << node.length | node.label
        left -= node.length
        if not left:
            return key, node.rest
        side = int(last is not (signed and left == bits))
        key = key << 1 | side
        cell = node.rest.refs[side]
        left -= 1
    return None


def find_nearest(
    machine: Machine, root: Cell | None, key: int, bits: int, *, up: bool, equal: bool, signed: bool
) -> tuple[int, Slice] | None:
    """Return the nearest key above (``up``) or below a key, or the key itself if ``equal``."""
    if root is None:
        return None
    cell, left = root, bits
    turns: list[tuple[Cell, int, int]] = []  # the other side of forks where it has nearer keys
    while True:
        node = load_node(machine, cell, left)
        shared = _common(node.label, node.length, _low(key, left), left)
        above = key >> left
        if shared < node.length:
            wanted = key >> left - shared - 1 & 1
            if signed and left - shared == bits:
                wanted ^= 1
            if bool(wanted) is not up:  # all keys below the node lie in the wanted direction
                turns.append((cell, above, left))
            break
        if node.length == left:
            if equal:
                return key, node.rest
            break
        left -= node.length + 1
        side = key >> left & 1
        order = side ^ (signed and left + 1 == bits)
        if bool(order) is not up:
            turns.append((node.rest.refs[1 - side], (key >> left) ^ 1, left))
        cell = node.rest.refs[side]
    if not turns:
        return None
    cell, above, left = turns[-1]
    return find_extreme(machine, cell, bits, last=not up, signed=signed, key=above, left=left)


def cut_prefix(
    machine: Machine, root: Cell | None, prefix: int, size: int, bits: int, *, remove: bool
) -> Cell | None:
    """Return the part of a dictionary whose keys begin with ``prefix``; None if it is empty."""
    if root is None or not size:
        return root
    cell, done = root, 0
    while True:
        node = load_node(machine, cell, bits - done)
        wanted = size - done
        shared = min(wanted, node.length)
        if node.label >> node.length - shared != _low(prefix, wanted) >> wanted - shared:
            return None
        if node.length >= wanted:
            return _cut_node(machine, root, node, prefix, (size, done, bits), remove=remove)
        done += node.length + 1
        cell = node.rest.refs[prefix >> size - done & 1]


def _cut_node(
    machine: Machine,
    root: Cell,
    node: DictionaryNode,
    prefix: int,
    sizes: tuple[int, int, int],
    *,
    remove: bool,
) -> Cell:
    """Build the root of a part from the node that all its keys pass."""
    size, done, bits = sizes
    if not remove:
        if not done:
            return root
        label = prefix >> size - done << node.length | node.label
        return _make_node(machine, label, done + node.length, bits, read_content(node.rest))
    kept = node.length - (size - done)
    return _make_node(machine, _low(node.label, kept), kept, bits - size, read_content(node.rest))


def _read_tag(node: DictionaryNode, left: int) -> tuple[DictionaryNode, bool]:
    """Return a node with what follows its tag, and whether it is a fork."""
    rest = node.rest
    if not rest.bits:
        raise VmError(Exit.DICTIONARY_ERROR)
    is_fork = bool(rest.peek(1))
    if is_fork and (node.length == left or rest.bits != 1 or rest.ref_count != _FORK_REFS):
        raise VmError(Exit.DICTIONARY_ERROR)
    return DictionaryNode(node.label, node.length, rest.skip(1)), is_fork


def find_prefix(
    machine: Machine, root: Cell | None, key: Slice, bits: int
) -> tuple[Slice, int] | None:
    """Return the value whose key is a prefix of ``key``, and the length of that key."""
    path = _descend(machine, root, key.uint(), bits, key.bits)
    if path.node is None or path.shared < path.node.length or path.is_fork:
        return None
    return path.node.rest, path.done + path.node.length
