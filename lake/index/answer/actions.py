"""Actions of traces and of accounts, from segments."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tonlake.lake.index.answer.traces import bound_moments
from tonlake.lake.index.index import Index
from tonlake.lake.index.page import MAX_READ, Declined, merge_walks, read_first, read_rows, walk
from tonlake.lake.index.segment.declared import ACTION_ACCOUNTS, ACTIONS
from tonlake.lake.index.segment.segment import SegmentTable


def list_actions(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/actions`` of some traces, by id, of a masterchain block, or of a range."""
    tables = index.current.tables(ACTIONS.name)
    for parameter, column in (("trace_ids", "trace_id"), ("action_ids", "action_id")):
        if asked[parameter]:
            return _cut_page(_read_keys(tables, column, asked[parameter]), asked)
    if asked["tx_hashes"]:
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
    """Return the rows that may have one of some values in a column.

    Raises:
        Declined: they are too many.
    """
    found = [
        (table, sorted({row for value in set(values) for row in table.find(column, value)}))
        for table in tables
    ]
    if sum(len(rows) for _, rows in found) > MAX_READ:
        raise Declined
    return [row for table, rows in found for row in table.read(rows)]


def _cut_first(
    places: Iterator[tuple[int, SegmentTable, int]], asked: Mapping[str, Any]
) -> list[Any]:
    """Return the page of the rows at places, which are by moment."""
    fits = _make_filter(asked)
    found = read_first(
        places,
        lambda part: list(filter(fits, read_rows(part))),
        asked["offset"] + asked["limit"],
    )
    return _cut_page(found, asked)


def list_account_keys(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/action_keys_of_account``."""
    account, descending = (asked["workchain"], asked["account"]), asked["descending"]
    span = bound_moments(asked)
    walks = []
    for segment in index.current.segments:
        number = segment.accounts.find(account)
        if number is not None:
            rows = segment.accounts.rows_of(ACTION_ACCOUNTS.name, number)
            table = segment.table(ACTION_ACCOUNTS.name)
            moments = table.numbers[_moment(asked)]
            walks.append((table, _walk_rows(rows, moments, span, descending=descending)))
    if not walks:
        return []
    return _cut_first(merge_walks(walks, descending=descending), {**asked, "account": None})


def _walk_rows(
    rows: Sequence[int], moments: Sequence[int], span: tuple[int, int], *, descending: bool
) -> Iterator[tuple[int, int]]:
    """Yield moment and number of rows within a range, by moment."""
    ordered = sorted(rows, key=moments.__getitem__)  # mostly sorted already
    start = bisect_left(ordered, span[0], key=moments.__getitem__)
    stop = bisect_right(ordered, span[1], start, key=moments.__getitem__)
    places = range(start, stop)
    for at in reversed(places) if descending else places:
        yield moments[ordered[at]], ordered[at]


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
    """Return the function that tells whether a row passes all filters."""
    types, excluded = set(asked["types"]), set(asked["excluded"])
    hidden_under, account = set(asked["hidden_under"]), asked["account"]
    traces, actions, hashes = (
        set(asked.get(name, ())) for name in ("trace_ids", "action_ids", "tx_hashes")
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
            and _is_within(row.trace_end_utime, asked["start_utime"], asked["end_utime"])
            and _is_within(row.trace_end_lt, asked["start_lt"], asked["end_lt"])
            and (not traces or row.trace_id in traces)
            and (not actions or row.action_id in actions)
            and (not hashes or not hashes.isdisjoint(row.tx_hashes))
            and (account is None or account in row.accounts)
        )

    return fits


def _order(asked: Mapping[str, Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the sort key of rows."""
    last = "end_utime" if asked["by_time"] else "end_lt"
    return itemgetter(_moment(asked), "trace_id", last, "action_id")


def _cut_page(rows: list[Any], asked: Mapping[str, Any]) -> list[Any]:
    """Return the page of rows that pass the filters, in order."""
    found = sorted(
        filter(_make_filter(asked), rows), key=_order(asked), reverse=asked["descending"]
    )
    return found[asked["offset"] :][: asked["limit"]]


def _is_within(value: int, first: int | None, last: int | None) -> bool:
    return (first is None or value >= first) and (last is None or value <= last)
