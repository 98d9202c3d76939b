"""Random cells for property tests, bags in the node's forms, and a simple reference."""

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from tests.ingest.updates import end_proof, end_pruned, end_update
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.envelope import crc32c
from tonlake.ingest.decode.cell.tree import CellTree

GENERIC = bytes.fromhex("b5ee9c72")
INDEXED = bytes.fromhex("68ff65f3")
INDEXED_CRC = bytes.fromhex("acc3a728")


@st.composite
def trees(draw: st.DrawFn, *, exotic: bool = True, size: int = 14) -> tuple[CellTree, int]:
    """A tree with shared and equal cells, and the index of its last cell."""
    tree = CellTree()
    kinds = ["ordinary"] * 4 + (["library", "pruned", "proof", "update"] if exotic else [])
    for _ in range(draw(st.integers(1, size))):
        kind = draw(st.sampled_from(kinds))
        known = st.integers(0, tree.count - 1)
        if kind == "library":
            data = draw(st.binary(min_size=32, max_size=32))
            CellBuilder(tree).store_uint(2, 8).store_bytes(data).end(exotic=True)
        elif kind == "pruned":
            mask = draw(st.sampled_from([1, 1, 3, 7, 2, 4, 5, 6]))
            count = mask.bit_count()
            seeds = draw(st.lists(st.integers(0, 255), min_size=count, max_size=count))
            end_pruned(tree, mask, [bytes([seed]) * 32 for seed in seeds], [0, 7, 99][:count])
        elif kind == "proof" and tree.count:
            end_proof(tree, draw(known))
        elif kind == "update" and tree.count:
            end_update(tree, draw(known), draw(known))
        else:
            bits = draw(st.sampled_from([0, 1, 7, 8, 9, 31, 32, 1016, 1023]))
            value = draw(st.integers(0, 3)) & ((1 << bits) - 1)
            kids = draw(st.lists(known, max_size=4)) if tree.count else []
            append_cell(tree, value, bits, tuple(kids))
    return tree, tree.count - 1


def _all_hashes(tree: CellTree, cell: int) -> bytes:
    levels = [level for level in range(4) if (tree.level_mask(cell) << 1 | 1) >> level & 1]
    depths = [tree.depth(cell, level).to_bytes(2, "big") for level in levels]
    return b"".join([*(tree.hash(cell, level) for level in levels), *depths])


def write_form(  # noqa: PLR0913 - every part of the form is a choice of the test
    tree: CellTree,
    order: Sequence[int],
    roots: Sequence[int],
    *,
    magic: bytes = GENERIC,
    width: int = 1,
    offset_width: int = 2,
    index: bool = False,
    crc: bool = False,
    cache_bits: bool = False,
    hashes: bool = False,
) -> bytes:
    """Write a bag in any form; ``hashes`` puts hashes and depths into every cell."""
    place = {cell: number for number, cell in enumerate(order)}
    body = b""
    ends = []
    for cell in order:
        head = tree.cells[cell]
        stored = _all_hashes(tree, cell) if hashes else b""
        body += bytes((head[0] | (16 if hashes else 0), head[1])) + stored + head[2:]
        body += b"".join(place[kid].to_bytes(width, "big") for kid in tree.links[cell])
        ends.append(len(body))
    if magic == GENERIC:
        flags = index << 7 | crc << 6 | cache_bits << 5
        named = b"".join(place[root].to_bytes(width, "big") for root in roots)
    else:
        flags, named, index, crc = 0, b"", True, magic == INDEXED_CRC
    counts = (len(order), len(roots), 0)
    bag = magic + bytes((flags | width, offset_width))
    bag += b"".join(count.to_bytes(width, "big") for count in counts)
    bag += len(body).to_bytes(offset_width, "big") + named
    if index:
        doubled = [end << 1 | number & 1 for number, end in enumerate(ends)]
        entries = doubled if cache_bits else ends
        bag += b"".join(entry.to_bytes(offset_width, "big") for entry in entries)
    bag += body
    return bag + crc32c(bag).to_bytes(4, "little") if crc else bag


def order_plainly(  # noqa: C901 - as close to the definition as can be
    tree: CellTree, roots: Sequence[int]
) -> list[bytes]:
    """The node's order by its recursive definition, as hashes; slow and only for small trees."""
    found: dict[bytes, int] = {}
    cells: list[int] = []
    kids: list[list[int]] = []
    weights: list[int] = []

    def enter(cell: int) -> int:
        cell_hash = tree.hash(cell)
        if cell_hash not in found:
            below = [enter(kid) for kid in tree.links[cell]]
            found[cell_hash] = len(cells)
            cells.append(cell)
            kids.append(below)
            weights.append(min(255, 1 + sum(weights[kid] for kid in below)))
        return found[cell_hash]

    numbers = [enter(root) for root in roots]
    for below in reversed(kids):
        light = [w <= (63 + j) // len(below) for j, w in enumerate(weights[k] for k in below)]
        heavy = [kid for kid, is_light in zip(below, light, strict=True) if not is_light]
        rest = 63 - sum(weights[k] for k, is_light in zip(below, light, strict=True) if is_light)
        for number, kid in enumerate(heavy):
            weights[kid] = min(weights[kid], (rest + number) // len(heavy))
    for number, below in enumerate(kids):
        total = 1 + sum(weights[kid] for kid in below)
        weights[number] = total if total <= weights[number] else 0
    state = [-1] * len(cells)
    placed: list[int] = []

    def revisit(number: int, force: int) -> None:
        if state[number] >= 0 or (force == 0 and state[number] != -1):
            return
        if force == 0:
            for kid in reversed(kids[number]):
                revisit(kid, int(not weights[kid]))
            state[number] = -2
        elif force == 1 and state[number] != -3:
            if not weights[number]:
                revisit(number, 0)
            for below in (1, 2):
                for kid in reversed(kids[number]):
                    revisit(kid, below)
            state[number] = -3
        elif force > 1:
            state[number] = len(placed)
            placed.append(number)

    for number in numbers:
        revisit(number, 0)
        revisit(number, 1)
    for number in numbers:
        revisit(number, 2)
    return [tree.hash(cells[number]) for number in reversed(placed)]


def grow(tree: CellTree, choices: Random, count: int) -> int:
    """Add cells that differ from all others, many shared among them; return one above all."""
    cells: list[int] = []
    near = choices.randrange(2, 30)
    for number in range(count):
        last = cells[-near:]
        kids = [*cells[-1:], *choices.choices(last, k=choices.randrange(4))] if number else []
        choices.shuffle(kids)
        cells.append(append_cell(tree, tree.count, 32, tuple(kids)))
    return cells[-1]
