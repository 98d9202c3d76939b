"""Previous blocks and shard tops follow from the rows of blocks, through splits and merges."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.ingest.dataset.pipeline import Tops, find_child, find_parent
from tonlake.lake.schema import BLOCKS, SHARD_BLOCKS

WHOLE = -(1 << 63)
LEFT, RIGHT = 1 << 62, -(1 << 62)


@st.composite
def shards(draw: st.DrawFn) -> int:
    """A shard as a signed integer: up to 60 bits of prefix, a one, and zeroes."""
    bits = draw(st.integers(0, 60))
    number = (draw(st.integers(0, (1 << bits) - 1)) << 1 | 1) << (63 - bits)
    return number - (1 << 64) if number >> 63 else number


@given(shards(), st.booleans())
def test_a_child_has_its_parent(shard: int, right: bool) -> None:  # noqa: FBT001 - a value
    child = find_child(shard, right=right)
    assert find_parent(child) == shard
    assert (child & (1 << 64) - 1 > shard & (1 << 64) - 1) == right


def make_block(shard: int, seqno: int, **flags: Any) -> dict[str, Any]:
    hashes = {"root_hash": bytes([seqno]) * 32, "file_hash": bytes([seqno]) * 32}
    times = {"start_lt": seqno, "end_lt": seqno, "gen_utime": seqno}
    block = {"workchain": 0, "shard": shard, "seqno": seqno, **hashes, **times}
    return block | {"after_merge": False, "after_split": False} | flags


def add(
    tops: Tops, mc_seqno: int, *blocks: dict[str, Any]
) -> tuple[list[dict[str, Any]], set[Any]]:
    """Add blocks; return the rows of blocks, and shard and seqno of each top."""
    rows, shards = tops.add(mc_seqno, blocks)
    named = [dict(zip(SHARD_BLOCKS.names, row, strict=True)) for row in shards]
    assert {row["mc_seqno"] for row in named} <= {mc_seqno}
    found = [dict(zip(BLOCKS.names, row, strict=True)) for row in rows]
    return found, {(row["shard"], row["seqno"]) for row in named}


def test_shards_split_and_merge() -> None:
    tops = Tops()
    assert add(tops, 1, make_block(WHOLE, 7))[1] == {(WHOLE, 7)}
    assert add(tops, 2)[1] == {(WHOLE, 7)}
    split = [make_block(shard, 8, after_split=True) for shard in (LEFT, RIGHT)]
    rows, found = add(tops, 3, *split)
    assert found == {(LEFT, 8), (RIGHT, 8)}
    assert [(row["prev_shard"], row["prev_seqno"], row["prev_root_hash"]) for row in rows] == [
        (WHOLE, 7, bytes([7]) * 32)
    ] * 2
    assert add(tops, 4, make_block(LEFT, 9))[1] == {(LEFT, 9), (RIGHT, 8)}
    (row,), found = add(tops, 5, make_block(WHOLE, 10, after_merge=True))
    assert found == {(WHOLE, 10)}
    assert (row["prev_shard"], row["prev_seqno"]) == (LEFT, 9)
    assert (row["prev2_shard"], row["prev2_seqno"]) == (RIGHT, 8)


def test_what_was_before_is_unknown() -> None:
    tops = Tops()
    (row,), found = add(tops, 5, make_block(WHOLE, 10, after_merge=True))
    assert found == {(WHOLE, 10)}
    assert (row["prev_shard"], row["prev_seqno"], row["prev2_root_hash"]) == (LEFT, None, None)
    (row,), _ = add(Tops(), 5, make_block(WHOLE, 10))
    assert (row["prev_seqno"], row["prev_root_hash"]) == (9, None)


def test_a_missing_block_is_named() -> None:
    tops = Tops()
    add(tops, 1, make_block(LEFT, 7))
    with pytest.raises(ValueError, match=r"\(0,4000000000000000,9\) follows block 7 of its shard"):
        tops.add(2, [make_block(LEFT, 9)])
    assert add(tops, 3, make_block(LEFT, 10))[1] == {(LEFT, 10)}


def test_after_a_hole_only_new_tops_are_known() -> None:
    tops = Tops()
    add(tops, 1, make_block(LEFT, 7), make_block(RIGHT, 7))
    assert add(tops, 3, make_block(LEFT, 9))[1] == {(LEFT, 9)}
