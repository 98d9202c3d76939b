"""Pages over a span of time or logical time: from the blocks of windows that begin at its edge.

A window grows until it holds the page, so that a page costs what is near its edge, however long
the span is.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.index.answer.traces import (
    TraceRows,
    bound_moments,
    cut_rows,
    end_of,
    list_block_traces,
    passes,
)
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.correspondence import MOST_SENT
from tonlake.lake.index.page.merge import Hit
from tonlake.lake.index.page.messages import FEWEST, read_alone
from tonlake.lake.schema.block import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.page.messages import Wanted
    from tonlake.lake.index.rowgroup.predicate import Bounds

Row = dict[str, Any]

_GROWTH = 4
_FIRST_S, _FIRST_LT = 8, 8_000_000
"""Width of the first window: some blocks of each shard."""

_LEAST, _MOST = 0, (1 << 63) - 1
_MOST_UTIME = (1 << 32) - 1

_FEWEST_OF_TRACES = 8
"""Transactions read at first for each trace of a page."""

MOST_ROWS = 20_000
"""Transactions of blocks that are read to find a page of them; deeper pages are left to SQL."""


class Window(NamedTuple):
    """Unix seconds or logical times, both ends included; ``is_all`` if nothing lies beyond."""

    low: int
    high: int
    is_all: bool


def list_transactions(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Return a page of the transactions of a span, by logical time or by time."""
    by_time = asked["by_time"]
    most = asked["offset"] + asked["limit"]
    utimes = _fill(asked["start_utime"], asked["end_utime"], _MOST_UTIME)
    lts = _fill(asked["start_lt"], asked["end_lt"], _MOST)
    for window in _grow_past_pruned(index, asked, *(utimes if by_time else lts), by_time=by_time):
        own = window.low, window.high
        bounds = _cover(own, lts) if by_time else _cover(utimes, own)
        blocks = index.gather(BLOCKS.name, ("mc_seqno", "tx_count"), bounds)
        if sum(block["tx_count"] or 0 for block in blocks) < most and not window.is_all:
            continue
        seqnos = {block["mc_seqno"] for block in blocks}
        spans = (own, lts) if by_time else (utimes, own)
        found = _list_within(index, seqnos, *spans, by_time=by_time)
        if len(found) >= most or window.is_all:
            return _cut(found, asked)
    raise Declined


def list_messages(index: Index, asked: Mapping[str, Any], wanted: Wanted) -> list[Any]:
    """Return the first messages of a span by creation, or by its time, either end of each."""
    windows = _grow_past_pruned(index, asked, wanted.low, wanted.high, by_time=wanted.by_time)
    for window in windows:
        own = window.low, window.high
        lts = window.low - MOST_SENT, window.high
        bounds = {"gen_utime": own} if wanted.by_time else _cover((_LEAST, _MOST_UTIME), lts)
        blocks = index.gather(BLOCKS.name, ("mc_seqno",), bounds)
        seqnos = {block["mc_seqno"] for block in blocks}
        spans = (own, (_LEAST, _MOST)) if wanted.by_time else ((_LEAST, _MOST_UTIME), lts)
        found = _list_within(index, seqnos, *spans, by_time=wanted.by_time)
        alone = read_alone(index.segments.segments, *own, by_time=wanted.by_time)
        part = _read_sent(index, found, alone, wanted._replace(low=window.low, high=window.high))
        if len(part) >= wanted.most or window.is_all:
            return wanted.sort(part)[: wanted.most]
    raise Declined


def _read_sent(
    index: Index, found: list[_Found], alone: list[Any], wanted: Wanted
) -> dict[bytes, Any]:
    """Return messages that transactions made, or ``alone``, by hash: all, or those of the page."""
    found.sort(key=itemgetter(0), reverse=wanted.descending)
    # An earlier transaction may have made a message after a later one did.
    margin = MOST_SENT if wanted.descending and not wanted.by_time else 0
    sent = wanted.within(alone)
    start, size = 0, max(FEWEST, wanted.most)
    while start < len(found):
        records = index.segments.read_records(hit for _, hit in found[start : start + size])
        start, size = start + size, size * 2
        lines = [line for record in records for line in record.messages]
        sent |= wanted.within([line for line in lines if line.direction == "out"])
        if start < len(found):
            edge = found[start][0][0] + margin
            moments = (wanted.order(line)[0] for line in sent.values())
            settled = (moment > edge if wanted.descending else moment < edge for moment in moments)
            if sum(settled) >= wanted.most:
                break
    return sent


def list_blocks(index: Index, asked: Mapping[str, Any], filters: Mapping[str, Any]) -> list[Row]:
    """Return the blocks of a span by time that a page is of; ``filters`` are the others, exact."""
    most = asked["offset"] + asked["limit"]
    utimes = _fill(asked["start_utime"], asked["end_utime"], _MOST_UTIME)
    lts = _fill(asked["start_lt"], asked["end_lt"], _MOST)
    columns = tuple(name for name in BLOCKS.names if name != "time")
    for window in _grow(index, asked, *utimes, by_time=True):
        bounds: dict[str, Bounds] = {"gen_utime": (window.low, window.high), "start_lt": lts}
        bounds |= {name: (value, value) for name, value in filters.items()}
        found = index.gather(BLOCKS.name, columns, bounds)
        if len(found) >= most or window.is_all:
            return found
    raise Declined


def list_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/traces``: those of the transactions near the edge of a span.

    A trace ends with one of its transactions.
    """
    if asked["mc_seqno"] is not None:
        return list_block_traces(index, asked)
    by_time = asked["by_time"]
    low, high = bound_moments(asked)
    unit, other = ("utime", "lt") if by_time else ("lt", "utime")
    span = {f"start_{unit}": low, f"end_{unit}": high, f"start_{other}": None, f"end_{other}": None}
    traces, most, size = TraceRows(index), asked["offset"] + asked["limit"], 0
    hits: list[Hit] = []
    while len(hits) == size:
        size = max(1, _FEWEST_OF_TRACES * most, _GROWTH * size)
        hits = list_transactions(index, {**asked, **span, "offset": 0, "limit": size})
        ids = dict.fromkeys(hit["trace_id"] for hit in hits)
        rows = (traces.find(trace_id) for trace_id in ids if trace_id is not None)
        page = [row for row in rows if passes(row, asked)]
        if len(hits) == size:
            last = hits[-1]
            edge = last.segment.now[last.row] if by_time else last["lt"]
            ends = (row[end_of(by_time=by_time)] for row in page)
            settled = (end > edge if asked["descending"] else end < edge for end in ends)
            if sum(settled) >= most:
                break
    return cut_rows(page, asked)


def bound_ends(
    index: Index, asked: Mapping[str, Any]
) -> Iterator[tuple[dict[str, tuple[int, int]], bool]]:
    """Yield bounds of the ends of traces, for growing windows, and whether they are all."""
    descending = asked["descending"]
    spans = {
        "trace_end_utime": _fill(asked["start_utime"], asked["end_utime"], _MOST_UTIME),
        "trace_end_lt": _fill(asked["start_lt"], asked["end_lt"], _MOST),
    }
    own = "trace_end_utime" if asked["by_time"] else "trace_end_lt"
    first, last = spans[own]
    after: int | None = asked["after_end"]
    if after is not None:
        first, last = (first, min(last, after)) if descending else (max(first, after), last)
    for low, high, is_all in _grow(index, asked, first, last, by_time=asked["by_time"]):
        yield {**spans, own: (low, high)}, is_all


def _fill(first: int | None, last: int | None, most: int) -> tuple[int, int]:
    return _LEAST if first is None else max(_LEAST, first), most if last is None else min(
        most, last
    )


def _cover(utimes: tuple[int, int], lts: tuple[int, int]) -> dict[str, Bounds]:
    """Return bounds of the blocks that may have transactions of both spans."""
    return {"gen_utime": utimes, "end_lt": (lts[0], _MOST), "start_lt": (_LEAST, lts[1])}


def _grow(
    index: Index, asked: Mapping[str, Any], first: int, last: int, *, by_time: bool
) -> Iterator[Window]:
    """Yield windows from the end of a span where its page begins, each larger than the last."""
    if asked["offset"] + asked["limit"] > MOST_ROWS:
        raise Declined
    edge = _find_edge(index, descending=asked["descending"], by_time=by_time)
    width = _FIRST_S if by_time else _FIRST_LT
    while True:
        # Nothing is said of what lies beyond the ends: blocks of shards may.
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


def _find_edge(index: Index, *, descending: bool, by_time: bool) -> int:
    """Return when the last masterchain block of the lake ended, or the first."""
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


def _grow_past_pruned(
    index: Index, asked: Mapping[str, Any], first: int, last: int, *, by_time: bool
) -> Iterator[Window]:
    """Yield windows like ``_grow``, as long as all transactions in them have their blocks.

    Of pruned blocks some transactions are there alone.
    """
    border = 0
    if index.snapshot.state.last_pruned:
        border = _find_edge(index, descending=False, by_time=by_time) + 1
        border += 0 if by_time else MOST_SENT  # messages are created after their transaction
    for window in _grow(index, asked, first, last, by_time=by_time):
        if window.low < border:
            raise Declined
        yield window


_Found = tuple[tuple[int, int], Hit]


def _list_within(
    index: Index,
    mc_seqnos: set[int],
    utimes: tuple[int, int],
    lts: tuple[int, int],
    *,
    by_time: bool,
) -> list[_Found]:
    """Return the transactions within both spans of masterchain blocks, each with its order."""
    lists = [listed.cut(*lts) for seqno in mc_seqnos for listed in index.segments.list_block(seqno)]
    if sum(listed.size for listed in lists) > MOST_ROWS:
        raise Declined
    found: list[_Found] = []
    for listed in lists:
        segment = listed.segment
        for row in listed.rows[listed.start : listed.end]:
            now, lt = segment.now[row], segment.lt[row]
            if utimes[0] <= now <= utimes[1]:
                found.append(((now if by_time else lt, lt), Hit(segment, row)))
    return found


def _cut(found: list[_Found], asked: Mapping[str, Any]) -> list[Hit]:
    """Return a page in order; transactions of one time by workchain and account."""
    most = asked["offset"] + asked["limit"]
    found.sort(key=itemgetter(0), reverse=asked["descending"])
    if most <= 0 or not found:
        return []
    edge = found[min(most, len(found)) - 1][0]
    end = most
    while end < len(found) and found[end][0] == edge:
        end += 1
    chosen = found[:end]
    chosen.sort(key=lambda each: (each[1]["workchain"], each[1]["account"]))
    chosen.sort(key=itemgetter(0), reverse=asked["descending"])
    return [hit for _order, hit in chosen[asked["offset"] : most]]
