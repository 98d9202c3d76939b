"""The order in which the node writes the cells of a bag (``BagOfCells::reorder_cells``).

Parents stand before children. Cells get a weight: the size of their sub-tree, cut so that the
children of a cell share 63 between them; a cell whose children outweigh it is *special* and its
sub-tree is placed as a unit. Small trees have no special cell. All walks keep their own stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.cell.tree import CellTree

_MAX_CELL_WEIGHT = 64
_MAX_WEIGHT = 255
# No cell is special in a tree of up to 48 cells, shared ones counted every time: a child is cut
# only if it is heavier than the rest divided by the children above their share, and two such
# children (the least are 16 and 17 of four) so unequal need 50 cells together.
_LIGHT = 48

_NEW, _PREVISITED, _VISITED = -1, -2, -3
_PREVISIT, _VISIT, _ALLOCATE = 0, 1, 2


class CellOrder(NamedTuple):
    """Cells in the order of the bag; ``twins`` maps left-out cells to their equals in it."""

    cells: list[int]
    twins: dict[int, int]


def canonical_order(tree: CellTree, roots: Sequence[int]) -> CellOrder:
    """Return the cells under ``roots`` in the node's order, equal cells once."""
    if len(roots) == 1:
        light = _order_light_tree(tree, roots[0])
        if light:
            return CellOrder(light, {})
    order, twins = _collect(tree, roots)
    numbers = {cell: number for number, cell in enumerate(order)}
    for cell, twin in twins.items():
        numbers[cell] = numbers[twin]
    links = [[numbers[kid] for kid in tree.links[cell]] for cell in order]
    weights = _weigh(links)
    placed = _place(links, weights, [numbers[root] for root in roots])
    return CellOrder([order[number] for number in placed], twins)


def _order_light_tree(tree: CellTree, root: int) -> list[int]:
    """Return the order of a small tree without shared cells, or nothing if it is none.

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
    hashes = tree.digests().tops
    return order if len({hashes[cell] for cell in order}) == len(order) else []


def _collect(tree: CellTree, roots: Sequence[int]) -> tuple[list[int], dict[int, int]]:
    """Return the distinct cells under ``roots``, children first, and the twins of those."""
    hashes = tree.digests().tops
    links = tree.links
    first: dict[bytes, int] = {}
    done: set[int] = set()
    twins: dict[int, int] = {}
    order = []
    todo = [~root for root in reversed(roots)]
    while todo:
        cell = todo.pop()
        entered = cell >= 0
        cell = cell if entered else ~cell
        if cell in done:
            continue
        twin = first.setdefault(hashes[cell], cell)
        if twin != cell:
            twins[cell] = twin
            done.add(cell)
        elif entered or not links[cell]:
            done.add(cell)
            order.append(cell)
        else:
            todo.append(cell)
            todo += [~kid for kid in reversed(links[cell])]
    return order, twins


def _weigh(links: list[list[int]]) -> list[int]:
    """Return the weight of every cell, 0 for special ones; children stand before parents."""
    weights: list[int] = []
    for kids in links:
        weights.append(min(_MAX_WEIGHT, 1 + sum([weights[kid] for kid in kids])))
    if max(weights) <= _LIGHT:
        return weights
    for kids in reversed(links):
        _share(kids, weights)
    for number, kids in enumerate(links):
        total = 1 + sum(weights[kid] for kid in kids)
        weights[number] = total if total <= weights[number] else 0
    return weights


def _share(kids: list[int], weights: list[int]) -> None:
    """Cut the weights of the children of one cell so that together they stay below 64."""
    count = len(kids)
    rest = _MAX_CELL_WEIGHT - 1
    heavy = []
    for place, kid in enumerate(kids):
        if weights[kid] <= (_MAX_CELL_WEIGHT - 1 + place) // count:
            rest -= weights[kid]
        else:
            heavy.append(kid)
    for kid in heavy:
        weights[kid] = min(weights[kid], rest // len(heavy))
        rest += 1


def _place(links: list[list[int]], weights: list[int], roots: list[int]) -> list[int]:
    """Return the numbers of the cells in the order of the bag.

    The node fills the bag from its end: a visit places what is below the children, last child
    first, then the children; a previsit looks for special cells and visits those beforehand.
    """
    state = [_NEW] * len(links)
    placed: list[int] = []
    for root in roots:
        _run([(root, _VISIT), (root, _PREVISIT)], links, weights, state, placed)
    for root in roots:
        if state[root] < 0:
            state[root] = len(placed)
            placed.append(root)
    placed.reverse()
    return placed


def _run(
    todo: list[tuple[int, int]],
    links: list[list[int]],
    weights: list[int],
    state: list[int],
    placed: list[int],
) -> None:
    """Do the steps of ``todo``, last first, and those that follow from them."""
    while todo:
        number, step = todo.pop()
        kids = links[number]
        if step == _PREVISIT and state[number] == _NEW:
            state[number] = _PREVISITED
            todo += [(kid, _PREVISIT if weights[kid] else _VISIT) for kid in kids]
        elif step == _VISIT and state[number] in (_NEW, _PREVISITED):
            todo.append((number, _ALLOCATE))
            todo += [(kid, _VISIT) for kid in kids]
            if not weights[number]:
                todo.append((number, _PREVISIT))
        elif step == _ALLOCATE:
            for kid in reversed(kids):
                if state[kid] < 0:
                    state[kid] = len(placed)
                    placed.append(kid)
            state[number] = _VISITED
