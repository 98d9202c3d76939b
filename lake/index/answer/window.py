"""Windows of time or logical time, growing from the edge of a range, and the blocks in them.

A window grows until it holds a page, so a page costs only what is near its edge, however long the
range is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.correspondence import MAX_SENT
from tonlake.lake.schema.block import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.rowgroup.predicate import Bounds
    from tonlake.lake.index.rowgroup.selection import Selection

_GROWTH = 4
_FIRST_S, _FIRST_LT = 8, 8_000_000
"""Width of the first window: some blocks of each shard."""

MIN_LT, MAX_LT = 0, (1 << 63) - 1
MAX_UTIME = (1 << 32) - 1

MAX_ROWS = 20_000
"""Most rows read to find a page; deeper pages are left to SQL."""


class Window(NamedTuple):
    """Unix seconds or logical times, both ends included; ``is_all`` if nothing lies beyond."""

    low: int
    high: int
    is_all: bool


def fill(first: int | None, last: int | None, most: int) -> tuple[int, int]:
    """Return both ends of a range, with the least and ``most`` as defaults."""
    low = MIN_LT if first is None else max(MIN_LT, first)
    return low, most if last is None else min(most, last)


def cover(utimes: tuple[int, int], lts: tuple[int, int]) -> dict[str, Bounds]:
    """Return bounds of the blocks that may have transactions in both ranges."""
    return _narrow({"gen_utime": utimes, "end_lt": (lts[0], MAX_LT), "start_lt": (MIN_LT, lts[1])})


def _narrow(bounds: dict[str, tuple[int, int]]) -> dict[str, Bounds]:
    """Drop bounds that every value satisfies, because comparing a column takes time."""
    return {
        name: bound
        for name, bound in bounds.items()
        if bound not in ((MIN_LT, MAX_LT), (MIN_LT, MAX_UTIME))
    }


def bound_ends(index: Index, asked: Mapping[str, Any]) -> Iterator[tuple[dict[str, Bounds], bool]]:
    """Yield bounds of the ends of traces, for growing windows, and whether they are complete."""
    descending = asked["descending"]
    spans = {
        "trace_end_utime": fill(asked["start_utime"], asked["end_utime"], MAX_UTIME),
        "trace_end_lt": fill(asked["start_lt"], asked["end_lt"], MAX_LT),
    }
    own = "trace_end_utime" if asked["by_time"] else "trace_end_lt"
    first, last = spans[own]
    after: int | None = asked["after_end"]
    if after is not None:
        first, last = (first, min(last, after)) if descending else (max(first, after), last)
    for low, high, is_all in grow(index, asked, first, last, by_time=asked["by_time"]):
        yield _narrow({**spans, own: (low, high)}), is_all


def cut_blocks(
    blocks: Selection, window: Window, asked: Mapping[str, Any], most: int, margin: int = 0
) -> Iterator[tuple[Window, set[int]]]:
    """Yield the part of a window whose blocks have ``most`` transactions, then all of it.

    Each comes with its masterchain blocks, and those within ``margin`` before it. A window with
    fewer transactions is not yielded, unless nothing lies beyond.
    """
    seqnos, counts = blocks.values("mc_seqno"), blocks.values("tx_count")
    if sum(count or 0 for count in counts) < most and not window.is_all:
        return
    by_time, descending = asked["by_time"], asked["descending"]
    begins = blocks.values("gen_utime" if by_time else "start_lt")
    ends = begins if by_time else blocks.values("end_lt")
    edges = begins if descending else ends
    passed = 0
    for at in sorted(range(len(edges)), key=edges.__getitem__, reverse=descending):
        passed += counts[at] or 0
        if passed >= most:
            low, high, _ = window
            low, high = (max(low, edges[at]), high) if descending else (low, min(high, edges[at]))
            places = zip(seqnos, begins, ends, strict=True)
            yield (
                Window(low, high, is_all=False),
                {seqno for seqno, begin, end in places if begin <= high and end >= low - margin},
            )
            break
    yield window, set(seqnos)


def grow(
    index: Index, asked: Mapping[str, Any], first: int, last: int, *, by_time: bool
) -> Iterator[Window]:
    """Yield windows from the end of a range where its page begins, each larger than the last."""
    if asked["offset"] + asked["limit"] > MAX_ROWS:
        raise Declined
    edge = _find_edge(index, descending=asked["descending"], by_time=by_time)
    width = _FIRST_S if by_time else _FIRST_LT
    while True:
        # Do not limit the open ends: blocks of shards may lie beyond.
        low, high = first, last
        if asked["descending"]:
            low = max(first, min(last, edge) - width)
        else:
            high = min(last, max(first, edge) + width)
        is_all = (low, high) == (first, last)
        yield Window(low, high, is_all)
        if is_all:
            return
        width *= _GROWTH
        begin = _find_edge(index, descending=not asked["descending"], by_time=by_time)
        if low < begin if asked["descending"] else high > begin:
            yield Window(first, last, is_all=True)
            return


def _find_edge(index: Index, *, descending: bool, by_time: bool) -> int:
    """Return the end time of the last masterchain block of the lake, or of the first."""
    known = index.edges.get((descending, by_time))
    if known is not None:
        return known
    ranges = index.snapshot.ranges
    if not ranges or not index.has_blocks:
        raise Declined
    seqno = ranges[-1][1] if descending else ranges[0][0]
    place = {"mc_seqno": (seqno, seqno), "workchain": (MASTERCHAIN, MASTERCHAIN)}
    name = "gen_utime" if by_time else "end_lt"
    for block in index.gather(BLOCKS.name, (name,), place):
        edge: int = block[name]
        index.edges[descending, by_time] = edge
        return edge
    raise Declined


def grow_past_pruned(
    index: Index, asked: Mapping[str, Any], first: int, last: int, *, by_time: bool
) -> Iterator[Window]:
    """Yield windows like ``grow``, while all transactions in them have their blocks.

    Some transactions of pruned blocks are kept without their blocks.
    """
    border = 0
    if index.snapshot.state.last_pruned:
        border = _find_edge(index, descending=False, by_time=by_time) + 1
        border += 0 if by_time else MAX_SENT  # messages are created after their transaction
    for window in grow(index, asked, first, last, by_time=by_time):
        if window.low < border:
            raise Declined
        yield window
