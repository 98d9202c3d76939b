"""Damaged bags of cells raise only BocError, quickly."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.ingest.decode.cell.samples import GENERIC, INDEXED, INDEXED_CRC, write_form
from tests.ingest.updates import end_proof, end_pruned, end_update
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import canonical_order, serialize_boc
from tonlake.ingest.errors import BocError

HANGS_S = 10.0
"""Processor seconds after which a case counts as a hang; a sound one takes milliseconds."""


def mutate(bag: bytes, choices: Random) -> bytes:
    """Damage a bag in one to four places."""
    spoiled = bytearray(bag)
    for _ in range(choices.randrange(1, 5)):
        at = choices.randrange(len(spoiled)) if spoiled else 0
        match choices.randrange(7):
            case 0:
                spoiled[at : at + 1] = bytes([choices.randrange(256)])
            case 1:
                spoiled[at : at + 1] = bytes([bag[at % len(bag)] ^ 1 << choices.randrange(8)])
            case 2:
                del spoiled[at:]
            case 3:
                del spoiled[at : at + choices.randrange(1, 9)]
            case 4:
                spoiled[at:at] = choices.randbytes(choices.randrange(1, 9))
            case 5:
                start = choices.randrange(len(bag))
                spoiled[at:at] = bag[start : start + choices.randrange(40)]
            case _:
                # The head, where sizes stand, is worth more attempts than its share of bytes.
                at = choices.randrange(min(30, len(spoiled) or 1))
                spoiled[at : at + 1] = bytes([choices.choice([0, 1, 0x7F, 0x80, 0xFF])])
    return bytes(spoiled)


def list_seeds() -> list[bytes]:
    """Small bags of every form with every kind of cell."""
    tree = CellTree()
    leaf = append_cell(tree, 0b00_1, 3, ())
    pruned = end_pruned(tree, 3, [tree.hash(leaf), bytes(32)], [0, 3])
    fork = append_cell(tree, 0, 2, (leaf, pruned))
    inner = end_update(tree, fork, append_cell(tree, 7, 1001, (pruned, fork, leaf)))
    library = CellBuilder(tree).store_uint(2, 8).store_bytes(bytes(32)).end(exotic=True)
    root = append_cell(tree, 5, 64, (end_proof(tree, inner), library, fork, leaf))
    order = canonical_order(tree, [root]).cells
    bags = [serialize_boc(tree, [root, fork])]
    for magic in (GENERIC, INDEXED, INDEXED_CRC):
        for width in (1, 2, 3):
            for flag in (False, True):
                bag = write_form(
                    tree,
                    order,
                    [root],
                    magic=magic,
                    width=width,
                    index=flag,
                    cache_bits=flag and magic == GENERIC,
                    hashes=flag,
                )
                bags.append(bag)
    return bags


def _use(bag: bytes) -> bool:
    """Do with a bag all that is ever done with one; tell whether it is one."""
    with suppress(BocError):
        tree = parse_boc(bag, check_crc=False)
        for root in tree.roots:
            for level in range(4):
                tree.hash(root, level)
                tree.depth(root, level)
        again = parse_boc(serialize_boc(tree, tree.roots))
        assert [again.hash(root) for root in again.roots] == [
            tree.hash(root) for root in tree.roots
        ]
        for key_bits in (1, 32, 256):
            with suppress(BocError):
                list(iter_hashmap(tree, tree.roots[0], key_bits))
        return True
    return False


def _run(seeds: Sequence[bytes], cases: int, seed: int) -> int:
    choices = Random(seed)  # noqa: S311 - repeatable, no secret
    read = 0
    for _ in range(cases):
        bag = mutate(choices.choice(seeds), choices)
        started = time.process_time()
        read += _use(bag)
        assert time.process_time() - started < HANGS_S, bag.hex()
    return read


@pytest.mark.parametrize(
    ("cases", "seed"),
    [(5000, 1), *(pytest.param(100_000, seed, marks=pytest.mark.long) for seed in range(10, 20))],
)
def test_damaged_bags_of_every_form(cases: int, seed: int) -> None:
    assert 0 < _run(list_seeds(), cases, seed) < cases


def test_damaged_states(demo_facts: Path) -> None:
    seeds = [(demo_facts / "basestate0.boc").read_bytes()]
    assert _run(seeds, 100, 2) < 100


def test_noise() -> None:
    choices = Random(3)  # noqa: S311 - repeatable, no secret
    for magic in (b"", GENERIC, INDEXED, INDEXED_CRC):
        for _ in range(300):
            _use(magic + choices.randbytes(choices.randrange(60)))
