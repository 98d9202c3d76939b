"""Draws the shard blocks that a masterchain block commits, laid out by account id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.api.v3.layout.transaction import Block

WIDTH, ROW, GAP = 100, 34, 0.3
"""Width of the diagram and gap between boxes in percent; height of a row in pixels."""

MIN_LABEL = 9
"""Minimum width of a box with a label; narrower boxes have only a title."""

ID_BITS = 64


class ShardBox(msgspec.Struct, frozen=True):
    """A shard block, or a shard without a new block; ``path`` links to the block page.

    ``x`` and ``width`` are in percent of the diagram, ``y`` in pixels.
    """

    x: float
    y: int
    width: float
    label: str
    title: str
    path: str
    is_new: bool


class Shards(msgspec.Struct, frozen=True):
    """The boxes of one workchain, newest at the bottom."""

    workchain: int
    boxes: list[ShardBox]
    height: int


def measure_shard(shard: int) -> tuple[float, float]:
    """Return the start and end of a shard in the account id space of its workchain, 0 to 1.

    Args:
        shard: Unsigned shard id: the bits of the prefix, a one, then zeros.
    """
    low = shard & -shard
    return (shard - low) / (1 << ID_BITS), (shard + low) / (1 << ID_BITS)


def draw_shards(committed: Sequence[Block], tops: Iterable[tuple[int, int, int]]) -> list[Shards]:
    """Return one diagram per workchain.

    Args:
        committed: The blocks that the masterchain block commits, in any order.
        tops: Workchain, shard (unsigned) and seqno of the newest block of every shard.
    """
    blocks = {
        (block.workchain, int(block.shard, 16), block.seqno): block.tx_count for block in committed
    }
    known: dict[tuple[int, int, int], int | None] = dict.fromkeys(tops) | blocks
    found = []
    for workchain in sorted({key[0] for key in known}):
        keys = sorted((key for key in known if key[0] == workchain), key=lambda key: key[2])
        found.append(_draw_workchain(workchain, [(key, known[key]) for key in keys]))
    return found


def _draw_workchain(
    workchain: int, blocks: Sequence[tuple[tuple[int, int, int], int | None]]
) -> Shards:
    """Place ``blocks``, sorted by seqno, each below the blocks whose account ids it overlaps."""
    boxes: list[ShardBox] = []
    levels: list[tuple[float, float, int]] = []
    for (_, shard, seqno), transactions in blocks:
        start, end = measure_shard(shard)
        above = [level for left, right, level in levels if left < end and start < right]
        level = max(above, default=-1) + 1
        levels.append((start, end, level))
        is_new = transactions is not None
        count = f"{transactions:,} transactions" if is_new else "no new block"
        width = round((end - start) * WIDTH - GAP, 3)
        boxes.append(
            ShardBox(
                round(start * WIDTH, 3),
                level * ROW,
                max(width, 0.1),
                f"{seqno}: {transactions:,}" if is_new and width >= MIN_LABEL else "",
                f"{workchain}:{shard:016x}:{seqno}, {count}",
                f"/block/{workchain}:{shard:016x}:{seqno}",
                is_new,
            )
        )
    return Shards(workchain, boxes, (max(level for *_, level in levels) + 1) * ROW)
