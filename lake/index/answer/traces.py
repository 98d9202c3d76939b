"""Traces, their transactions and their actions, from segments."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any

from tonlake.lake.file.rows import Row
from tonlake.lake.index.answer.messages import list_ends
from tonlake.lake.index.index import Index, Segments
from tonlake.lake.index.page import (
    MAX_READ,
    Declined,
    Hit,
    Listed,
    Member,
    Place,
    bound,
    cut_walk,
    has_other_bounds,
    is_within,
    merge_walks,
    read_rows,
    walk,
)
from tonlake.lake.index.segment.declared import ACTION_ACCOUNTS, ACTIONS, NO_LT, TRACES
from tonlake.lake.index.segment.segment import SegmentTable
from tonlake.lake.log.ranges import Range

MAX_OF_ACCOUNT = 10_000
"""Most transactions of an account that are read to find its traces."""

_MIN_READ = 8
"""Transactions in the first read, at least; each further one has twice as many."""

_FILTERS = ("mc_seqno", "start_utime", "end_utime", "start_lt", "end_lt", "after_end")


def list_transaction_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/trace_ids_of_transactions``."""
    return _name_traces(index.current, asked["hashes"])


def list_message_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/trace_ids_of_messages``."""
    return _name_traces(index.current, [row["tx_hash"] for row in list_ends(index, asked)])


def _name_traces(segments: Segments, tx_hashes: Iterable[bytes]) -> list[Row]:
    hits = map(segments.find_transaction, tx_hashes)
    found = dict.fromkeys(hit["trace_id"] for hit in hits if hit is not None)
    return [{"trace_id": trace_id} for trace_id in found if trace_id is not None]


def find_transaction_traces(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_traces``."""
    hits = list(map(index.current.find_transaction, dict.fromkeys(asked["hashes"])))
    if None in hits:  # the lake may have traces of transactions that it does not have
        raise Declined
    return [hit for hit in hits if hit is not None and hit["trace_id"] is not None]


def find_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/traces_by_id`` without filters, if all of the traces are complete."""
    if asked["by_time"] or any(asked[name] is not None for name in _FILTERS):
        raise Declined
    wanted = dict.fromkeys(asked["trace_ids"])
    rows = list(index.current.find_traces(wanted).values())
    if len(rows) < len(wanted):
        raise Declined
    return cut_rows(rows, asked)


def list_account_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/traces_of_account``: traces end within the longest duration from a row."""
    segments = index.current
    by_time, descending = asked["by_time"], asked["descending"]
    most = asked["offset"] + asked["limit"]
    unit = "utime" if by_time else "lt"
    spans = (row[f"end_{unit}"] - row[f"start_{unit}"] for row in index.open_traces.values())
    wait = max(segments.longest_trace(by_time=by_time), 0, *spans)
    low, high = bound_moments(asked)
    lists = [
        listed.cut(max(low - wait, 0), high, by_time=by_time)
        for listed in segments.list_account((asked["workchain"], asked["account"]))
    ]
    places = _walk_account(lists, descending=descending, by_time=by_time)
    is_filtered = any(asked[name] is not None for name in _FILTERS)
    moment, span = end_of(by_time=by_time), (0, NO_LT)
    seen: set[bytes] = set()
    page: list[Row] = []
    read, size = 0, max(_MIN_READ, most)
    while chunk := list(islice(places, size)):
        read, size = read + len(chunk), size * 2
        if read > MAX_OF_ACCOUNT:
            raise Declined
        fresh = {trace_id for _, trace_id in chunk if trace_id is not None} - seen
        seen |= fresh
        page += [
            row
            for row in _read_traces(index, fresh, moment, span)
            if not is_filtered or passes(row, asked)
        ]
        ends = sorted(map(itemgetter(moment), page), reverse=descending)[:most]
        if len(ends) == most:
            last = ends[-1]
            if not is_filtered:  # those beyond the page need not be read
                span = (last, NO_LT) if descending else (0, last)
            near = (last - wait, NO_LT) if descending else (0, last)
            places = takewhile(partial(_is_near, *near), places)
    return cut_rows(page, asked)


def list_traces(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/traces``, of a range or of a block, which commits their last transactions."""
    tables, descending = index.current.tables(TRACES.name), asked["descending"]
    if asked["mc_seqno"] is not None:
        found = index.current.read(TRACES.name, "mc_seqno_end", asked["mc_seqno"])
        return cut_rows([row for row in found if passes(row, asked)], asked)
    moment, span = end_of(by_time=asked["by_time"]), bound_moments(asked)
    places = merge_walks(
        [(table, walk(table, moment, span, descending=descending)) for table in tables],
        descending=descending,
    )
    return cut_walk(
        places,
        lambda part: [row for row in read_rows(part) if passes(row, asked)],
        partial(_sort_rows, asked=asked),
        asked,
        further=[row for row in index.open_traces.values() if passes(row, asked)],
        count=len if asked["after_end"] is None and not has_other_bounds(asked) else None,
    )


def _sort_rows(rows: list[Row], asked: Mapping[str, Any]) -> None:
    order = itemgetter(end_of(by_time=asked["by_time"]), "trace_id")
    rows.sort(key=order, reverse=asked["descending"])


def cut_rows(rows: list[Row], asked: Mapping[str, Any]) -> list[Row]:
    """Return a page of traces in order."""
    _sort_rows(rows, asked)
    return rows[asked["offset"] :][: asked["limit"]]


def end_of(*, by_time: bool) -> str:
    """Return the column that pages are sorted by."""
    return "end_utime" if by_time else "end_lt"


def bound_moments(asked: Mapping[str, Any]) -> tuple[int, int]:
    """Return the range of ends that a page may have, both included."""
    unit, after = "utime" if asked["by_time"] else "lt", asked["after_end"]
    low, high = bound(asked[f"start_{unit}"], asked[f"end_{unit}"])
    if after is not None:
        return (low, min(high, after)) if asked["descending"] else (max(low, after), high)
    return low, high


def _walk_account(
    lists: Sequence[Listed], *, descending: bool, by_time: bool
) -> Iterator[tuple[int, bytes | None]]:
    """Yield moment and trace of transactions, in order."""
    step = -1 if descending else 1
    for segment, rows in lists[::step]:
        transactions = segment.transactions
        moments, trace_of = transactions.now if by_time else transactions.lt, transactions.trace_of
        for row in rows[::step]:
            yield moments[row], trace_of(row)


def _is_near(first: int, last: int, place: tuple[int, Any]) -> bool:
    return first <= place[0] <= last


def _read_traces(index: Index, trace_ids: set[bytes], moment: str, span: Range) -> Iterable[Any]:
    """Return traces, complete ones or not; complete ones outside of a span may be left out."""
    opened = index.open_traces
    found = index.current.find_traces(trace_ids - opened.keys(), moment, span)
    found |= {trace_id: opened[trace_id] for trace_id in trace_ids & opened.keys()}
    if len(found) < len(trace_ids):
        raise Declined
    return (row for row in found.values() if row is not None)


def passes(row: Row, asked: Mapping[str, Any]) -> bool:
    """Whether a trace passes the filters and comes after the page cursor."""
    after = asked["after_end"], asked["after_id"]
    if after[0] is not None:
        place = row[end_of(by_time=asked["by_time"])], row["trace_id"]
        if not (place < after if asked["descending"] else place > after):
            return False
    if asked["mc_seqno"] not in (None, row["mc_seqno_end"]):
        return False
    return (
        (asked["mc_seqno"] is None or row["state"] == "complete")
        and is_within(row["end_utime"], asked["start_utime"], asked["end_utime"])
        and is_within(row["end_lt"], asked["start_lt"], asked["end_lt"])
    )


def list_members(index: Index, asked: Mapping[str, Any]) -> list[Member]:
    """Answer ``v3/trace_transactions``."""
    first_lt, last_lt = asked["first_lt"], asked["last_lt"]
    return [
        member
        for trace_id in sorted(set(asked["trace_ids"]))
        for lt, member in index.current.list_trace(trace_id)
        if first_lt <= lt <= last_lt
    ]


def find_adjacent(index: Index, asked: Mapping[str, Any]) -> list[Member]:
    """Answer ``v3/transaction_keys_adjacent`` of transactions whose trace is known."""
    segments, tx_hash, direction = index.current, asked["hash"], asked["direction"]
    own = segments.find_transaction(tx_hash)
    trace_id = None if own is None else own["trace_id"]
    if own is None or trace_id is None:
        raise Declined
    return [
        member
        for _, member in segments.list_trace(trace_id)
        if (direction != "out" and member.hash == own["parent_hash"])
        or (direction != "in" and member.parent_hash == tx_hash)
    ]


def list_actions(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/actions`` of some traces, by id, of a masterchain block, or of a range."""
    tables = index.current.tables(ACTIONS.name)
    for parameter, column in (("trace_ids", "trace_id"), ("action_ids", "action_id")):
        if asked[parameter]:
            return _cut_page(_read_keys(tables, column, asked[parameter]), asked)
    if asked["tx_hashes"] or asked["end_hashes"]:
        raise Declined
    if asked["mc_seqno"] is not None:
        return _cut_page(_read_keys(tables, "mc_seqno", [asked["mc_seqno"]]), asked)
    span, descending = bound_moments(asked), asked["descending"]
    walks = [(table, walk(table, _moment(asked), span, descending=descending)) for table in tables]
    return _cut_first(merge_walks(walks, descending=descending), asked)


def _moment(asked: Mapping[str, Any]) -> str:
    return "trace_end_utime" if asked["by_time"] else "trace_end_lt"


def _read_keys(
    tables: Sequence[SegmentTable], column: str, values: Sequence[bytes | int]
) -> list[Any]:
    """Return the rows that may have one of some values in a column."""
    found = []
    for table in tables:
        find = table.postings[column].find
        found.append((table, sorted({row for value in set(values) for row in find(value)})))
    if sum(len(rows) for _, rows in found) > MAX_READ:
        raise Declined
    return [row for table, rows in found for row in table.read(rows)]


def _cut_first(places: Iterator[Place[SegmentTable]], asked: Mapping[str, Any]) -> list[Any]:
    """Return the page of the rows at places, which are by moment."""
    fits = _make_filter(asked)
    return cut_walk(
        places,
        lambda part: list(filter(fits, read_rows(part))),
        partial(list.sort, key=_order(asked), reverse=asked["descending"]),
        asked,
    )


def list_account_keys(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/action_keys_of_account``."""
    account, descending = (asked["workchain"], asked["account"]), asked["descending"]
    moment, span = _moment(asked), bound_moments(asked)
    walks = []
    for segment in index.current.segments:
        number = segment.accounts.find(account)
        if number is not None:
            rows = segment.accounts.rows_of(ACTION_ACCOUNTS.name, number)
            table = segment.table(ACTION_ACCOUNTS.name)
            walks.append((table, walk(table, moment, span, [rows], descending=descending)))
    return _cut_first(merge_walks(walks, descending=descending), {**asked, "account": None})


def find_by_key(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/actions_by_key``."""
    wanted = {name: set(asked[f"{name}s"]) for name in ("action_id", "mc_seqno")}
    ends = set(asked["trace_ends"])
    return [
        row
        for row in _read_keys(index.current.tables(ACTIONS.name), "action_id", asked["action_ids"])
        if row.trace_end_lt in ends and all(row[name] in values for name, values in wanted.items())
    ]


def _make_filter(asked: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Return the check whether a row passes all filters."""
    types, excluded = set(asked["types"]), set(asked["excluded"])
    hidden_under, account = set(asked["hidden_under"]), asked["account"]
    traces, actions, hashes, ends = (
        set(asked.get(name, ())) for name in ("trace_ids", "action_ids", "tx_hashes", "end_hashes")
    )
    place_of, after = _order(asked), None
    if asked["after_end"] is not None:
        names = ("after_end", "after_trace", "after_action", "after_id")
        after = tuple(asked[name] for name in names)

    def fits(row: Any) -> bool:  # noqa: ANN401 - a row
        if after is not None:
            place = place_of(row)
            if not (place < after if asked["descending"] else place > after):
                return False
        return (
            (not types or row.type in types)
            and row.type not in excluded
            and hidden_under.isdisjoint(row.ancestor_type)
            and asked["mc_seqno"] in (None, row.mc_seqno)
            and is_within(row.trace_end_utime, asked["start_utime"], asked["end_utime"])
            and is_within(row.trace_end_lt, asked["start_lt"], asked["end_lt"])
            and (not traces or row.trace_id in traces)
            and (not actions or row.action_id in actions)
            and (not hashes or not hashes.isdisjoint(row.tx_hashes))
            and (not ends or not ends.isdisjoint(row.tx_hashes))
            and (account is None or account in row.accounts)
        )

    return fits


def _order(asked: Mapping[str, Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the sort key of rows."""
    return itemgetter(_moment(asked), "trace_id", end_of(by_time=asked["by_time"]), "action_id")


def _cut_page(rows: list[Any], asked: Mapping[str, Any]) -> list[Any]:
    """Return the page of rows that pass the filters, in order."""
    found = sorted(
        filter(_make_filter(asked), rows), key=_order(asked), reverse=asked["descending"]
    )
    return found[asked["offset"] :][: asked["limit"]]
