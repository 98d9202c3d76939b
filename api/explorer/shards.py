"""The picture of a masterchain block: the shard blocks that it commits, over their account ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.api.v3.layout.block import Block

WIDTH, ROW, GAP = 100, 34, 0.3
"""Width of the picture and the gap between boxes, in percent; height of a row, in pixels."""

LEAST_LABEL = 9
"""Narrower boxes have no text, only a title."""

ID_BITS = 64


class ShardBox(msgspec.Struct, frozen=True):
    """A shard block, or a shard without a new one; ``path`` is that of its page.

    ``x`` and ``width`` are in percent of the picture, ``y`` in pixels.
    """

    x: float
    y: int
    width: float
    label: str
    title: str
    path: str
    is_new: bool


class Shards(msgspec.Struct, frozen=True):
    """The boxes of one workchain, the newest at the bottom."""

    workchain: int
    boxes: list[ShardBox]
    height: int


def measure_shard(shard: int) -> tuple[float, float]:
    """Return where a shard begins and ends among the account ids of its workchain, 0 to 1.

    Args:
        shard: Its id, unsigned: the bits of the prefix, a one, and zeroes.
    """
    low = shard & -shard
    return (shard - low) / (1 << ID_BITS), (shard + low) / (1 << ID_BITS)


def draw_shards(committed: Sequence[Block], tops: Iterable[tuple[int, int, int]]) -> list[Shards]:
    """Return a picture for each workchain.

    Args:
        committed: The blocks that the masterchain block commits, in any order.
        tops: Workchain, shard (unsigned) and seqno of every shard's newest block.
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
    """Place blocks, in the order of their seqnos, each below those of the same account ids."""
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
                f"{seqno}: {transactions:,}" if is_new and width >= LEAST_LABEL else "",
                f"{workchain}:{shard:016x}:{seqno}, {count}",
                f"/block/{workchain}:{shard:016x}:{seqno}",
                is_new,
            )
        )
    return Shards(workchain, boxes, (max(level for *_, level in levels) + 1) * ROW)
