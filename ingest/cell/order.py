"""The order in which the node writes the cells of a bag (``BagOfCells::reorder_cells``).

Parents stand before children. The weight of a cell is the size of its sub-tree, shared cells
counted every time, cut at 255. The children of a cell share a weight of 63; where one is heavier
than its share, the parts below it may weigh more than it may, and it becomes *special*: its
sub-tree is placed before the rest is. All walks keep their own stack and meet a cell once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ingest.cell.run import (
    MIN_PARENTS,
    MIN_WEIGHT,
    Run,
    count_parents,
    is_sealed,
    make_run,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ingest.cell.tree import CellTree

    Links = Mapping[int, tuple[int, ...]] | Sequence[tuple[int, ...]]

_SHARED_WEIGHT = 63
_MAX_WEIGHT = 255
# Below a cell of weight 48 none is special: a child is cut only if it is heavier than what its
# lighter siblings leave, divided by the number of the others; two such children (at least 16 and
# 17, of four) that are so unequal need 50 cells together.
_LIGHT = 48

_SEARCH, _VISIT, _PLACE_KIDS = 0, 1, 3


class CellOrder(NamedTuple):
    """Cells in the order of the bag; ``twins`` maps left-out cells to their equals in it."""

    cells: list[int]
    twins: dict[int, int]


def canonical_order(tree: CellTree, roots: Sequence[int]) -> CellOrder:
    """Return the cells under ``roots`` in the node's order, equal cells once."""
    order = _order_light_tree(tree, roots[0]) if len(roots) == 1 else []
    hash_of = tree.hash
    if not order:
        order = _Placing(tree.links, tree.weights()).place(roots)
    is_known = all(tree.is_distinct(root) for root in roots)
    if is_known or len({hash_of(cell) for cell in order}) == len(order):
        return CellOrder(order, {})
    first: dict[bytes, int] = {}
    twins = {cell: first.setdefault(hash_of(cell), cell) for cell in order}
    links = {cell: tuple([twins[kid] for kid in tree.links[cell]]) for cell in order}
    order = _Placing(links, tree.weights()).place([twins[root] for root in roots])
    return CellOrder(order, twins)


def order_items(tree: CellTree, root: int) -> list[int]:
    """Return the cells under ``root``, all of them different, in the node's order.

    In the place of cells that belong to a run (``tree.runs``) stands ~(2 * cell + part), where
    ``cell`` is the one above them.
    """
    weights = tree.weights()
    order = _order_light_tree(tree, root) if weights[root] <= MIN_WEIGHT else []
    if order:
        return order
    runs = {cell: run for cell, run in tree.runs().items() if cell != root}
    return _Placing(tree.links, weights, runs).place([root])


def find_runs(
    cells: Sequence[bytes], links: Sequence[tuple[int, ...]], weights: Sequence[int]
) -> dict[int, Run]:
    """Return the runs of a tree by the cells above them."""
    parents = count_parents(links)
    shared = [cell for cell, count in parents.items() if count >= MIN_PARENTS]
    runs = {}
    for cell in shared:
        if weights[cell] < MIN_WEIGHT:
            continue
        if is_sealed(cell, links, parents):
            placing = _Placing(links, weights)
            placed = placing.place([cell])[::-1]
            runs[cell] = make_run(
                *(cells, links, placed, placing.searched),
                total=placing.left.get(cell, weights[cell]),
                has_special=placing.has_special,
            )
    return runs


def weigh(links: Sequence[Sequence[int]]) -> list[int]:
    """Return the weight of every cell of a tree in which children stand after parents."""
    weights = [1] * len(links)
    for cell in range(len(links) - 1, -1, -1):
        kids = links[cell]
        if kids:
            total = 1
            for kid in kids:
                total += weights[kid]
            weights[cell] = min(_MAX_WEIGHT, total)
    return weights


def weigh_cell(kids: Sequence[int], weights: list[int]) -> int:
    """Return the weight of a cell from those of its children."""
    return min(_MAX_WEIGHT, 1 + sum([weights[kid] for kid in kids]))


def _order_light_tree(tree: CellTree, root: int) -> list[int]:
    """Return the order of a light tree without shared cells, or nothing if it is none.

    Without special cells the children of the root come first, then what is below the first child
    in the same way, then what is below the second, and so on.
    """
    links = tree.links
    order = [root]
    todo = [root]
    while todo:
        kids = links[todo.pop()]
        if kids:
            order += kids
            todo += kids[::-1]
            if len(order) > _LIGHT:
                return []
    return order if len(set(order)) == len(order) else []


class _Placing:
    """One bag in the making; the node fills it from its end, and so does this."""

    def __init__(
        self, links: Links, weights: Sequence[int], runs: Mapping[int, Run] | None = None
    ) -> None:
        self._links = links
        self._weights = weights
        self._runs = runs or {}
        self._special: set[int] = set()
        self.left: dict[int, int] = {}
        """Weight that is left to heavy cells."""
        self.has_special = False
        self.searched = 0
        """Cells that the search had placed when the last root was visited."""
        self._placed: dict[int, None] = {}
        self._visited: set[int] = set()
        self._searched: set[int] = set()

    def place(self, roots: Sequence[int]) -> list[int]:
        """Return the cells under ``roots`` in the order of the bag."""
        self._find_special(roots)
        for root in roots:
            self._run(root << 2 | _SEARCH)
            self.searched = len(self._placed)
            self._run(root << 2 | _VISIT)
        for root in roots:
            self._placed.setdefault(root)
        return list(self._placed)[::-1]

    def _find_special(self, roots: Sequence[int]) -> None:
        """Share out weights from the roots down, then sum them up again from below."""
        listed = self._list(roots, _LIGHT)
        cut = self.left
        runs = self._runs
        for cell in reversed(listed):
            if cell not in runs:
                self._share(self._links[cell], cut)
        if any(self._weights[cell] <= _LIGHT for cell in cut):
            listed = self._list(roots, 1)
        special = self._special
        weights = self._weights
        for cell in listed:
            if cell in runs:
                if runs[cell].total > cut.get(cell, weights[cell]):
                    special.add(cell)
                cut[cell] = runs[cell].total
                self.has_special |= runs[cell].has_special
                continue
            kids = [kid for kid in self._links[cell] if kid not in special]
            total = 1 + sum([cut.get(kid, weights[kid]) for kid in kids])
            if total > cut.get(cell, weights[cell]):
                special.add(cell)
            cut[cell] = total
        self.has_special |= bool(special)

    def _list(self, roots: Sequence[int], least: int) -> list[int]:
        """Return the cells under ``roots`` that weigh more than ``least``, parents last."""
        weights = self._weights
        done: set[int] = set()
        listed = []
        todo = [root for root in reversed(roots) if weights[root] > least]
        while todo:
            cell = todo.pop()
            if cell < 0:
                listed.append(~cell)
            elif cell not in done:
                done.add(cell)
                todo.append(~cell)
                if cell in self._runs:
                    continue
                todo += [kid for kid in reversed(self._links[cell]) if weights[kid] > least]
        return listed

    def _share(self, kids: Sequence[int], cut: dict[int, int]) -> None:
        """Cut the weights of the children of one cell so that together they stay below 64."""
        rest = _SHARED_WEIGHT
        heavy = []
        for place, kid in enumerate(kids):
            weight = cut.get(kid, self._weights[kid])
            if weight <= (_SHARED_WEIGHT + place) // len(kids):
                rest -= weight
            else:
                heavy.append(kid)
        for kid in heavy:
            limit = rest // len(heavy)
            if cut.get(kid, self._weights[kid]) > limit:
                cut[kid] = limit
            rest += 1

    def _run(self, first: int) -> None:
        """Do a step (cell and kind of step) and all that follow.

        A search goes down, last child first, until it meets special cells, which are visited. A
        visit places what is below the children of a cell, then the children.
        """
        links = self._links
        placed = self._placed
        visited = self._visited
        todo = [first]
        while todo:
            step = todo.pop()
            cell = step >> 2
            if step & 3 == _PLACE_KIDS:
                for kid in reversed(links[cell]):
                    placed.setdefault(kid)
                visited.add(cell)
            elif cell in visited:
                continue
            elif cell in self._runs:
                self._place_run(cell, step & 3)
            elif step & 3 == _VISIT:
                todo.append(step | _PLACE_KIDS)
                todo += [kid << 2 | _VISIT for kid in links[cell] if links[kid]]
                if cell in self._special:
                    todo.append(cell << 2 | _SEARCH)
            elif self.has_special and cell not in self._searched:
                self._searched.add(cell)
                todo += self._search_below(cell)

    def _search_below(self, cell: int) -> list[int]:
        """Return the steps of a search below a cell, last one first."""
        links, special = self._links, self._special
        kids = [kid for kid in links[cell] if links[kid]]
        return [kid << 2 | (_VISIT if kid in special else _SEARCH) for kid in kids]

    def _place_run(self, cell: int, kind: int) -> None:
        """Place the part of a run that a search places, and on a visit the other one, too."""
        if cell not in self._searched:
            self._searched.add(cell)
            self._placed[~(cell << 1)] = None
        if kind == _VISIT:
            self._visited.add(cell)
            self._placed[~(cell << 1 | 1)] = None
