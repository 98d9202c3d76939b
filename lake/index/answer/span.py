"""Pages over a range of time or logical time, from blocks in windows that begin at its edge."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.answer.traces import (
    TraceRows,
    bound_moments,
    cut_rows,
    end_of,
    list_block_traces,
    passes,
)
from tonlake.lake.index.answer.window import (
    MAX_LT,
    MAX_ROWS,
    MAX_UTIME,
    MIN_LT,
    cover,
    cut_blocks,
    fill,
    grow,
    grow_past_pruned,
)
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.correspondence import MAX_SENT
from tonlake.lake.index.page.hit import Hit
from tonlake.lake.index.page.merge import order_ties
from tonlake.lake.index.page.messages import count_next, read_alone
from tonlake.lake.index.segments import group_by_segment
from tonlake.lake.schema.block import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.page.messages import PageRequest
    from tonlake.lake.index.rowgroup.predicate import Bounds
    from tonlake.lake.index.segment.segment import Segment

Row = dict[str, Any]

_MIN_OF_TRACES = 3
"""Transactions read per trace of a page before checking whether the page is complete."""

_STEPS_AT_ONCE = 4
"""Steps of transactions read at once, each followed by that check: finding blocks costs more."""

_TRANSACTIONS_OF_MESSAGE = 4
"""Transactions in the blocks that are read first, per message of a page."""


def list_transactions(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Return a page of the transactions of a range, by logical time or by time."""
    return _cut(_find_first(index, asked, asked["offset"] + asked["limit"]), asked)


def _find_first(index: Index, asked: Mapping[str, Any], most: int) -> list[_Found]:
    """Return at least ``most`` transactions of a range in order; ties in any order."""
    by_time = asked["by_time"]
    utimes = fill(asked["start_utime"], asked["end_utime"], MAX_UTIME)
    lts = fill(asked["start_lt"], asked["end_lt"], MAX_LT)
    edges = {**asked, "offset": 0, "limit": most}
    for window in grow_past_pruned(index, edges, *(utimes if by_time else lts), by_time=by_time):
        own = window.low, window.high
        bounds = cover(own, lts) if by_time else cover(utimes, own)
        blocks = index.select(BLOCKS.name, bounds)
        for near, seqnos in cut_blocks(blocks, window, asked, most):
            own = near.low, near.high
            spans = (own, lts) if by_time else (utimes, own)
            found = _list_within(index, seqnos, *spans, by_time=by_time)
            if len(found) >= most or near.is_all:
                found.sort(key=itemgetter(0), reverse=asked["descending"])
                return found
    raise Declined


def list_messages(index: Index, asked: Mapping[str, Any], request: PageRequest) -> list[Any]:
    """Return the first messages of a range by creation, or by its time, one end of each."""
    windows = grow_past_pruned(index, asked, request.low, request.high, by_time=request.by_time)
    for window in windows:
        bounds: dict[str, Bounds] = {"gen_utime": (window.low, window.high)}
        margin = 0 if request.by_time else MAX_SENT
        if not request.by_time:
            bounds = cover((MIN_LT, MAX_UTIME), (window.low - margin, window.high))
        blocks = index.select(BLOCKS.name, bounds)
        most = _TRANSACTIONS_OF_MESSAGE * request.most
        for near, seqnos in cut_blocks(blocks, window, asked, most, margin):
            own = near.low - margin, near.high
            spans = (own, (MIN_LT, MAX_LT)) if request.by_time else ((MIN_LT, MAX_UTIME), own)
            found = _list_within(index, seqnos, *spans, by_time=request.by_time)
            part = _find_sent(index, found, request._replace(low=near.low, high=near.high))
            if len(part) >= request.most or near.is_all:
                return request.sort(part)[: request.most]
    raise Declined


def _find_sent(index: Index, found: list[_Found], request: PageRequest) -> dict[bytes, Any]:
    """Return messages by hash, sent by transactions or without a known sender: at least a page."""
    found.sort(key=itemgetter(0), reverse=request.descending)
    # An earlier transaction may have sent a message after a later transaction did.
    margin = MAX_SENT if request.descending and not request.by_time else 0
    filters = (*request.of_span, ("direction", "out", "out"))
    sent = request.unite(read_alone(index.segments.segments, request))
    start = settled = 0
    while start < len(found) and settled < request.most:
        end = start + count_next(request.most, settled, start)
        if request.by_time:  # messages of one second are sorted by hash: all are needed
            last = found[min(end, len(found)) - 1][0][0]
            end = next((at for at in range(end, len(found)) if found[at][0][0] != last), len(found))
        hits = [hit for _, hit in found[start:end]]
        for segment, here in group_by_segment(hits).items():
            sent |= request.unite(segment.choose_lines([hits[at].row for at in here], filters))
        start = end
        if start < len(found):
            settled = request.count_settled(sent, found[start][0][0] + margin)
    return sent


def list_blocks(index: Index, asked: Mapping[str, Any], filters: Mapping[str, Any]) -> list[Row]:
    """Return the blocks of a range by time, for a page; ``filters`` are the other, exact ones."""
    most = asked["offset"] + asked["limit"]
    utimes = fill(asked["start_utime"], asked["end_utime"], MAX_UTIME)
    lts = fill(asked["start_lt"], asked["end_lt"], MAX_LT)
    columns = tuple(name for name in BLOCKS.names if name != "time")
    for window in grow(index, asked, *utimes, by_time=True):
        bounds: dict[str, Bounds] = {"gen_utime": (window.low, window.high), "start_lt": lts}
        bounds |= {name: (value, value) for name, value in filters.items()}
        found = index.select(BLOCKS.name, bounds)
        if len(found) >= most or window.is_all:
            return found.nearest("gen_utime", most, descending=asked["descending"]).rows(columns)
    raise Declined


def list_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/traces``, from the transactions near the edge of a range.

    A trace ends with one of its transactions, and the others are not much earlier.
    """
    if asked["mc_seqno"] is not None:
        return list_block_traces(index, asked)
    by_time = asked["by_time"]
    low, high = bound_moments(asked)
    unit, other = ("utime", "lt") if by_time else ("lt", "utime")
    traces, most, size = TraceRows(index), asked["offset"] + asked["limit"], 0
    first = asked[f"start_{other}"]
    if first is not None:
        first -= traces.longest(by_time=not by_time)
    span = {f"start_{unit}": low, f"end_{unit}": high, f"start_{other}": first}
    step, found = max(1, _MIN_OF_TRACES * most), list[_Found]()
    while len(found) >= size:
        size = max(_STEPS_AT_ONCE * step, 2 * len(found))
        found = _find_first(index, {**asked, **span}, size)
        page: dict[bytes, Row] = {}
        for start in range(0, len(found), step):
            near = found[start : start + step]
            page |= _find_passing(traces, near, asked)
            if _count_settled(page.values(), near[-1][0][0], asked) >= most:
                return cut_rows(list(page.values()), asked)
    return cut_rows(list(page.values()), asked)


def _count_settled(rows: Iterable[Row], edge: int, asked: Mapping[str, Any]) -> int:
    """Return how many traces come before all that end at a moment or beyond."""
    ends = (row[end_of(by_time=asked["by_time"])] for row in rows)
    return sum(end > edge if asked["descending"] else end < edge for end in ends)


def _find_passing(
    traces: TraceRows, found: list[_Found], asked: Mapping[str, Any]
) -> dict[bytes, Row]:
    """Return the traces of some transactions that pass all filters, by id."""
    rows_of: dict[Segment, list[int]] = {}
    for _, hit in found:
        rows_of.setdefault(hit.segment, []).append(hit.row)
    page = traces.find(
        trace_id for segment, rows in rows_of.items() for trace_id in segment.traces.traces_of(rows)
    )
    return {trace_id: row for trace_id, row in page.items() if passes(row, asked)}


_Found = tuple[tuple[int, int], Hit]


def _list_within(
    index: Index,
    mc_seqnos: set[int],
    utimes: tuple[int, int],
    lts: tuple[int, int],
    *,
    by_time: bool,
) -> list[_Found]:
    """Return the transactions within both ranges in masterchain blocks, each with its sort key."""
    lists = [listed for seqno in mc_seqnos for listed in index.segments.list_block(seqno)]
    if lts != (MIN_LT, MAX_LT):
        lists = [listed.cut(*lts) for listed in lists]
    if sum(listed.size for listed in lists) > MAX_ROWS:
        raise Declined
    rows_of: dict[Segment, list[int]] = {}
    for listed in lists:
        rows_of.setdefault(listed.segment, []).extend(listed.rows[listed.start : listed.end])
    found: list[_Found] = []
    for segment, rows in rows_of.items():
        moments = zip(rows, segment.now.list_at(rows), segment.lt.list_at(rows), strict=True)
        found += [
            ((now if by_time else lt, lt), Hit(segment, row))
            for row, now, lt in moments
            if utimes[0] <= now <= utimes[1]
        ]
    return found


def _cut(found: list[_Found], asked: Mapping[str, Any]) -> list[Hit]:
    """Return a page of sorted transactions; ties by workchain and account."""
    most = asked["offset"] + asked["limit"]
    return order_ties(found, most)[asked["offset"] :]
