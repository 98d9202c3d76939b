"""The order in which rules see the blocks of a trace: the same in every run."""

from __future__ import annotations

from ingest.action.block import CALL, TRANSFER, Block
from ingest.action.engine import Index


def test_blocks_of_one_place_come_in_the_order_in_which_they_were_added() -> None:
    made = [Block(kind) for _ in range(50) for kind in (CALL, TRANSFER)]
    blocks = made[::2][::-1] + made[1::2]
    index = Index(blocks)
    assert index.find(frozenset({CALL})) == blocks[:50]
    assert index.find(frozenset({CALL, TRANSFER})) == blocks
    index.remove(blocks[0])
    index.add(blocks[0])
    assert index.find(frozenset()) == [*blocks[1:], blocks[0]]


def test_blocks_come_breadth_first_and_by_logical_time() -> None:
    blocks = [Block(CALL) for _ in range(4)]
    for block, (depth, lt) in zip(blocks, [(1, 5), (0, 9), (1, 4), (0, 8)], strict=True):
        block.depth, block.min_lt = depth, lt
    assert Index(blocks).find(frozenset({CALL})) == [blocks[at] for at in (3, 1, 2, 0)]
