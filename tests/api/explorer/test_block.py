"""The picture of shards: every block above its account ids, without overlap."""

from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from tonlake.api.explorer.block import WIDTH, draw_shards, measure_shard

WHOLE, LEFT, RIGHT = 1 << 63, 1 << 62, 3 << 62


def _block(shard: int, seqno: int, count: int = 1) -> Any:
    return SimpleNamespace(workchain=0, shard=f"{shard:016X}", seqno=seqno, tx_count=count)


def test_shards_are_measured() -> None:
    assert measure_shard(WHOLE) == (0, 1)
    assert measure_shard(LEFT) == (0, 0.5)
    assert measure_shard(RIGHT) == (0.5, 1)


def test_a_split_stands_below_its_parent() -> None:
    blocks = [_block(LEFT, 8), _block(RIGHT, 8, 5), _block(WHOLE, 7)]
    (found,) = draw_shards(blocks, [(0, LEFT, 8), (0, RIGHT, 8)])
    parent, left, right = found.boxes
    assert (parent.y, parent.width > left.width + 10) == (0, True)
    assert left.y == right.y > 0
    assert right.label == "8: 5"


def test_a_shard_without_a_new_block_is_shown() -> None:
    (found,) = draw_shards([], [(0, WHOLE, 6)])
    assert [(box.is_new, box.label) for box in found.boxes] == [(False, "")]
    assert "no new block" in found.boxes[0].title


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 63), st.integers(1, 50)), max_size=20))
def test_no_box_lies_upon_another(shards: list[tuple[int, int, int]]) -> None:
    blocks = [
        _block((2 * (at % (1 << bits)) + 1) << (63 - bits), seqno) for bits, at, seqno in shards
    ]
    for picture in draw_shards(cast("Any", blocks), []):
        for box in picture.boxes:
            assert box.x >= 0
            assert box.x + box.width <= WIDTH
            assert box.y < picture.height
        for one, two in combinations(picture.boxes, 2):
            apart = one.x + one.width <= two.x or two.x + two.width <= one.x
            assert one.y != two.y or apart
