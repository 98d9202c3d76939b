"""Writes bags of cells in the generic form, with the node's order of cells.

The bytes equal those of the node's ``std_boc_serialize``, which TON Center returns. The time is
linear in the number of cells, however often they are shared.

In the order (``BagOfCells::reorder_cells``) parents come before children. The weight of a cell is
the size of its subtree, counting shared cells every time, at most 255. The children of a cell share
a weight of 63; if one exceeds its share, the parts below it may exceed theirs, and it becomes
*special*: its subtree is placed before the rest. All walks use an explicit stack and visit a cell
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.cell.envelope import crc32c as compute_crc32c

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.tree import CellTree

Links = Mapping[int, tuple[int, ...]] | Sequence[tuple[int, ...]]

_SHARED_WEIGHT = 63
_MAX_WEIGHT = 255

_SEARCH, _VISIT, _PLACE_CHILDREN = 0, 1, 3


class CellOrder(NamedTuple):
    """Cells in the order of the bag; ``twins`` maps omitted duplicates to the cells kept."""

    cells: list[int]
    twins: dict[int, int]


def canonical_order(tree: CellTree, roots: Sequence[int]) -> CellOrder:
    """Return the cells under ``roots`` in the node's order, without duplicates."""
    order, hash_of = _Placing(tree.links).place(roots), tree.hash
    if len({hash_of(cell) for cell in order}) == len(order):
        return CellOrder(order, {})
    first: dict[bytes, int] = {}
    twins = {cell: first.setdefault(hash_of(cell), cell) for cell in order}
    links = {cell: tuple([twins[child] for child in tree.links[cell]]) for cell in order}
    order = _Placing(links).place([twins[root] for root in roots])
    return CellOrder(order, twins)


class _Placing:
    """Places the cells of one bag, from its end to its start as the node does."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._weights: dict[int, int] = {}
        self._special: set[int] = set()
        self._guides: set[int] = set()
        """Ancestors of special cells that were not searched yet."""
        self._placed: dict[int, None] = {}
        self._visited: set[int] = set()

    def place(self, roots: Sequence[int]) -> list[int]:
        """Return the cells under ``roots`` in the order of the bag."""
        self._find_special(self._weigh(roots))
        for root in roots:
            self._run(root << 2 | _SEARCH)
            self._run(root << 2 | _VISIT)
        for root in roots:
            self._placed.setdefault(root)
        return list(self._placed)[::-1]

    def _weigh(self, roots: Sequence[int]) -> list[int]:
        """Weigh the cells under ``roots``; return those with children, parents last."""
        links, weights = self._links, self._weights
        listed = []
        todo = list(reversed(roots))
        while todo:
            cell = todo.pop()
            if cell < 0:
                total = 1
                for child in links[~cell]:
                    total += weights[child]
                weights[~cell] = min(_MAX_WEIGHT, total)
                listed.append(~cell)
            elif cell not in weights:
                weights[cell] = 1
                children = links[cell]
                if children:
                    todo.append(~cell)
                    todo += children[::-1]
        return listed

    def _find_special(self, listed: Sequence[int]) -> None:
        """Distribute weights from the roots down, then sum them up again from the leaves."""
        links, weights = self._links, self._weights
        cut: dict[int, int] = {}
        for cell in reversed(listed):
            self._share(links[cell], cut)
        special, guides = self._special, self._guides
        for cell in listed:
            children = [child for child in links[cell] if child not in special]
            total = 1 + sum([cut.get(child, weights[child]) for child in children])
            if total > cut.get(cell, weights[cell]):
                special.add(cell)
            cut[cell] = total
            if len(children) < len(links[cell]) or not guides.isdisjoint(children):
                guides.add(cell)

    def _share(self, children: Sequence[int], cut: dict[int, int]) -> None:
        """Cut the weights of the children of one cell so that their sum stays below 64."""
        rest = _SHARED_WEIGHT
        heavy = []
        for place, child in enumerate(children):
            weight = cut.get(child, self._weights[child])
            if weight <= (_SHARED_WEIGHT + place) // len(children):
                rest -= weight
            else:
                heavy.append(child)
        for child in heavy:
            limit = rest // len(heavy)
            if cut.get(child, self._weights[child]) > limit:
                cut[child] = limit
            rest += 1

    def _run(self, first: int) -> None:
        """Run a step (cell and kind of step) and all steps that follow from it.

        A search descends, last child first, until it finds special cells, which are visited. A
        visit places the descendants of the children of a cell, then the children.
        """
        links, special, guides = self._links, self._special, self._guides
        placed, visited = self._placed, self._visited
        todo = [first]
        while todo:
            step = todo.pop()
            cell = step >> 2
            if step & 3 == _PLACE_CHILDREN:
                for child in reversed(links[cell]):
                    placed.setdefault(child)
                visited.add(cell)
            elif cell in visited:
                continue
            elif step & 3 == _VISIT:
                todo.append(step | _PLACE_CHILDREN)
                todo += [child << 2 | _VISIT for child in links[cell] if links[child]]
                if cell in special:
                    todo.append(cell << 2 | _SEARCH)
            elif cell in guides:
                guides.remove(cell)  # one search is enough
                children = [child for child in links[cell] if links[child]]
                todo += [
                    child << 2 | (_VISIT if child in special else _SEARCH) for child in children
                ]


_MAGIC = bytes.fromhex("b5ee9c72")
_CRC_FLAG = 0x40
_MAX_CHAIN = 127
_BYTES = [bytes((number,)) for number in range(_MAX_CHAIN + 1)]
# One byte for references and sizes, one cell, one root, none absent; size and root follow.
_SINGLE_HEAD = _MAGIC + bytes((1, 1, 1, 1, 0))


def serialize_boc(tree: CellTree, roots: Sequence[int], *, crc32c: bool = False) -> bytes:
    """Return the bag of the subtrees under ``roots`` in the generic form without index.

    Duplicates are written once. With ``crc32c`` it is TON Center's ``std_boc_serialize``.
    """
    bag = None
    if len(roots) == 1:
        bag = serialize_chain(tree, tree.cells[roots[0]], tree.links[roots[0]])
    if bag is None:
        order, twins = canonical_order(tree, roots)
        places = {cell: place for place, cell in enumerate(order)}
        places |= {cell: places[twin] for cell, twin in twins.items()}
        bag = _write_ordered(tree, roots, order, places)
    return add_crc32c(bag) if crc32c else bag


def add_crc32c(bag: bytes) -> bytes:
    """Return a bag written by ``serialize_boc`` with its CRC-32C."""
    bag = _MAGIC + bytes((bag[4] | _CRC_FLAG,)) + bag[5:]
    return bag + compute_crc32c(bag).to_bytes(4, "little")


def serialize_single(cell: bytes) -> bytes:
    """Return the bag of one cell (d1, d2 and data) without children."""
    return _SINGLE_HEAD + bytes((len(cell), 0)) + cell


def serialize_chain(tree: CellTree, head: bytes, children: Sequence[int]) -> bytes | None:
    """Return the bag of a chain of cells, which all differ; None for others and long ones."""
    cells, links = tree.cells, tree.links
    parts, count = [head], 1
    while children:
        if len(children) > 1 or count > _MAX_CHAIN:
            return None
        child = children[0]
        parts += _BYTES[count], cells[child]
        children = links[child]
        count += 1
    body = b"".join(parts)
    width = len(body).bit_length() + 7 >> 3
    size = len(body).to_bytes(width, "big")
    return b"%b\1%c%c\1\0%b\0%b" % (_MAGIC, width, count, size, body)


def copy_part(tree: CellTree, root: int) -> bytes:
    """Return a bag of a cell and its descendants in the order of the parsed bag, duplicates too."""
    links, seen, order = tree.links, {root}, [root]
    for cell in order:
        for child in links[cell]:
            if child not in seen:
                seen.add(child)
                order.append(child)
    order.sort()  # in a bag parents come before children
    return _write_ordered(tree, [root], order)


def serialize_depth_first(tree: CellTree, root: int, *, crc32c: bool = False) -> bytes:
    """Return the bag of a cell with its descendants depth first; shared cells come last."""
    links = tree.links
    order: list[int] = []
    seen: set[int] = set()
    todo = [(root, False)]
    while todo:
        cell, is_left = todo.pop()
        if is_left:
            order.append(cell)
        elif cell not in seen:
            seen.add(cell)
            todo.append((cell, True))
            todo += [(child, False) for child in links[cell]]
    order.reverse()  # the last child was visited first
    bag = _write_ordered(tree, [root], order)
    return add_crc32c(bag) if crc32c else bag


def _write_ordered(
    tree: CellTree,
    roots: Sequence[int],
    order: Sequence[int],
    places: Mapping[int, int] | None = None,
) -> bytes:
    """Return the bag of cells in ``order``; ``places`` has the position of each cell in it."""
    places = places or {cell: place for place, cell in enumerate(order)}
    width = (len(order).bit_length() + 7) // 8
    cells, links = tree.cells, tree.links
    parts: list[bytes] = []
    for cell in order:
        parts += cells[cell], _join([places[child] for child in links[cell]], width)
    body = b"".join(parts)
    size_width = (len(body).bit_length() + 7) // 8
    counts = _join((len(order), len(roots), 0), width)
    tops = _join([places[root] for root in roots], width)
    size = len(body).to_bytes(size_width, "big")
    return b"".join((_MAGIC, bytes((width, size_width)), counts, size, tops, body))


def _join(numbers: Sequence[int], width: int) -> bytes:
    if width == 1:
        return bytes(numbers)
    return b"".join([number.to_bytes(width, "big") for number in numbers])
