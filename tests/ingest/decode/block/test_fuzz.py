"""Valid cells with garbage in them raise only DecodeError, quickly."""

import time
from contextlib import suppress
from functools import reduce
from operator import or_
from random import Random

import pytest

from tests.ingest.decode.cell.samples import write_form
from tests.ingest.decode.cell.test_fuzz import mutate
from tests.ingest.networks import Network, read_zero_states
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, MERKLE_UPDATE, CellTree, exotic_mask
from tonlake.ingest.decode.wholestate import TABLES, decode_states
from tonlake.ingest.errors import BocError, DecodeError

HANGS_S = 10.0
"""Processor seconds after which a case counts as a hang; a sound one takes milliseconds."""


def spoil_cells(tree: CellTree, choices: Random, *, places: int) -> bytes:
    """Return the bag of a tree with some cells changed, and Merkle cells that match them."""
    cells = [bytearray(head) for head in tree.cells]
    links = [list(kids) for kids in tree.links]
    plain = [cell for cell in range(tree.count) if not tree.cells[cell][0] & 8]
    for _ in range(places):
        cell = choices.choice(plain)
        _spoil_cell(cells[cell], links[cell], choices, range(cell + 1, tree.count))
    spoiled = CellTree()
    moved: dict[int, int] = {}
    for cell in range(tree.count - 1, -1, -1):
        kids = tuple(moved[kid] for kid in links[cell])
        head = cells[cell]
        head[0] = head[0] & 8 | len(kids)
        if tree.kind(cell) in (MERKLE_PROOF, MERKLE_UPDATE):
            hashes = [spoiled.hash(kid, 0) for kid in kids]
            depths = [spoiled.depth(kid, 0).to_bytes(2, "big") for kid in kids]
            head[3:] = b"".join(hashes + depths)
        masks = [spoiled.level_mask(kid) for kid in kids]
        exotic = bool(head[0] & 8)
        mask = exotic_mask(bytes(head), masks) if exotic else reduce(or_, masks, 0)
        head[0] |= mask << 5
        moved[cell] = spoiled.append(bytes(head), kids)
    return write_form(spoiled, range(tree.count)[::-1], [moved[0]], width=2, offset_width=3)


def _spoil_cell(head: bytearray, kids: list[int], choices: Random, later: range) -> None:
    """Change a bit, cut the data, or lose or gain a reference."""
    match choices.randrange(4):
        case 0 | 1 if len(head) > 2:
            head[choices.randrange(2, len(head))] ^= 1 << choices.randrange(8)
        case 2 if len(head) > 2:
            del head[choices.randrange(2, len(head)) :]
            head[1] = 2 * (len(head) - 2)
        case 3 if kids:
            kids.pop(choices.randrange(len(kids)))
        case _ if later and len(kids) < 4:
            kids.append(choices.choice(later))
    if head[1] & 1 and not head[-1] & 0x7F:
        head[-1] |= 1


@pytest.mark.parametrize(
    ("cases", "seed"),
    [(3000, 1), *(pytest.param(50_000, seed, marks=pytest.mark.long) for seed in range(10, 14))],
)
def test_transactions_with_garbage_in_their_cells(demo: Network, cases: int, seed: int) -> None:
    """Whole blocks are damaged in tests/ingest/decode/native/test_native.py."""
    choices = Random(seed)  # noqa: S311 - repeatable, no secret
    seeds = demo.tables["transactions"]["boc"].to_pylist()
    for _ in range(cases):
        bag = choices.choice(seeds)
        with suppress(BocError, DecodeError):
            if choices.randrange(2):
                bag = mutate(bag, choices)
            else:
                bag = spoil_cells(parse_boc(bag), choices, places=choices.randrange(1, 4))
            started = time.process_time()
            try:
                decode_transaction(bag)
            finally:
                assert time.process_time() - started < HANGS_S, bag.hex()


def test_states_with_garbage_in_their_cells(demo: Network) -> None:
    choices = Random(3)  # noqa: S311 - repeatable, no secret
    states = [parse_boc(state.data) for state in read_zero_states(demo.db)]
    for _ in range(200):
        with suppress(BocError, DecodeError):
            spoiled = spoil_cells(choices.choice(states), choices, places=choices.randrange(1, 4))
            assert set(decode_states([parse_boc(spoiled)], mc_seqno=0)) == set(TABLES)
