"""Parts of a tree that stand in many bags, such as the code of contracts, ordered only once.

A sub-tree whose cells no cell outside refers to, but for its root, is placed in the same way in
every bag: a search places one part of it, a visit the other (module ``order``). A part is kept as
one integer of its bytes, in which the references are places counted from the beginning of a part:
adding a multiple of the mask that has a 1 in each of these bytes sets them for a bag.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_RUN_BAG = 255
"""Bags with runs have at most so many cells: references take one byte."""

MIN_WEIGHT = 12
"""Smaller sub-trees are ordered as quickly as they are looked up."""

MIN_PARENTS = 8
"""A message has three, its transaction and two descriptions, and is in few bags."""


class Part(NamedTuple):
    """Some cells that stand side by side in every bag: their number and bytes."""

    cell_count: int
    size: int
    data: int
    masks: tuple[int, int]

    def write(self, starts: Sequence[int]) -> bytes:
        """Return the bytes in a bag where the two parts of the run begin at these places."""
        searched, visited = self.masks
        value = self.data + starts[0] * searched + starts[1] * visited
        return value.to_bytes(self.size, "big")


class Plan(NamedTuple):
    """How to write bags of one shape: so many cells; each local cell in turn and what follows."""

    cell_count: int
    steps: list[tuple[int, bytes]]


class Run(NamedTuple):
    """What is below a cell: the part that a search places, and the one that a visit places.

    ``kids`` are the children of the root: their part and place in it; ``total`` is the weight
    that is left to the root when special cells are taken off.
    """

    parts: tuple[Part, Part]
    kids: tuple[tuple[int, int], ...]
    total: int
    has_special: bool


def count_parents(links: Sequence[tuple[int, ...]]) -> Counter[int]:
    """Return how often each cell is referred to."""
    return Counter(chain.from_iterable(links))


def is_sealed(root: int, links: Sequence[tuple[int, ...]], parents: Mapping[int, int]) -> bool:
    """Tell whether the cells below a root are few, and only it joins them to the others."""
    below = {root}
    todo = [root]
    while todo:
        fresh = {kid for kid in links[todo.pop()] if kid not in below}
        below |= fresh
        todo += fresh
        if len(below) > MAX_RUN_BAG:
            return False
    inner = count_parents([links[cell] for cell in below])
    return all(inner[cell] == parents[cell] for cell in below if cell != root)


def make_run(
    cells: Sequence[bytes],
    links: Sequence[tuple[int, ...]],
    placed: Sequence[int],
    searched: int,
    *,
    total: int,
    has_special: bool,
) -> Run:
    """Return the run of cells in the order of placing, of which a search placed the first few.

    The root is the last of them. In a bag the cells of a part stand the other way round.
    """
    groups = (placed[:searched][::-1], placed[searched:-1][::-1])
    places = {cell: (at, place) for at in (0, 1) for place, cell in enumerate(groups[at])}
    first, second = (_make_part(cells, links, group, places) for group in groups)
    kids = tuple(places[kid] for kid in links[placed[-1]])
    return Run((first, second), kids, total, has_special)


def _make_part(
    cells: Sequence[bytes],
    links: Sequence[tuple[int, ...]],
    group: Sequence[int],
    places: Mapping[int, tuple[int, int]],
) -> Part:
    data = bytearray()
    masks = bytearray(), bytearray()
    for cell in group:
        data += cells[cell]
        for mask in masks:
            mask.extend(bytes(len(cells[cell])))
        for kid in links[cell]:
            at, place = places[kid]
            data.append(place)
            for number, mask in enumerate(masks):
                mask.append(number == at)
    first, second = (int.from_bytes(mask, "big") for mask in masks)
    return Part(len(group), len(data), int.from_bytes(data, "big"), (first, second))
