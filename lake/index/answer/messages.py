"""Messages by hash or by any filters, and their transactions, from segments."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tonlake.lake.file.rows import Row
from tonlake.lake.index.index import Index, Segments
from tonlake.lake.index.page import (
    MAX_READ,
    MAX_WALKED,
    Declined,
    Hit,
    Place,
    bound,
    cut_hits,
    cut_walk,
    group_places,
    has_other_bounds,
    has_row,
    merge_walks,
    read_first,
    walk,
)
from tonlake.lake.index.segment.declared import ABSENT, MESSAGE_COLUMNS, NO_LT, Message, make_row
from tonlake.lake.index.segment.segment import ENDS, Segment

MAX_ENDS = 1_000_000
"""Most messages of a key whose transactions are compared."""

_LINE = ("tx_lt", "tx_hash", *MESSAGE_COLUMNS)
_EQUAL = ("source", "destination", "opcode", "body_hash")
"""Parameters that are columns with postings."""

_BOUNDS = ("start_utime", "end_utime", "start_lt", "end_lt")
"""Parameters that only messages with a time of creation pass."""


def list_messages(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/messages``."""
    segments, descending = index.segments, asked["descending"]

    def order(row: Any) -> tuple[int, bytes]:  # noqa: ANN401 - a row
        moment = row.created_at if asked["by_time"] else row.created_lt
        return NO_LT if moment is None else moment, row.msg_hash

    if asked["msg_hashes"]:
        found = sorted(_find_by_hash(segments, asked).values(), key=order, reverse=descending)
        return found[asked["offset"] :][: asked["limit"]]
    read = partial(_read_places, segments, asked)
    count, first = _make_counter(segments, asked, read), 0
    if asked["offset"] and count is len and len(segments.segments) == 1:
        skipped, first = _skip(segments.segments[0], asked)
        asked = {**asked, "offset": asked["offset"] - skipped}
    walks = [(segment, _walk(segment, asked, first)) for segment in segments.segments]
    places = merge_walks(walks, descending=descending)
    distinct = (next(same) for _, same in groupby(places, key=itemgetter(0)))
    sort = partial(list.sort, key=order, reverse=descending)
    return cut_walk(distinct, read, sort, asked, count=count)


def _skip(segment: Segment, asked: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many messages are before a page for certain, and their rows.

    All rows pass the filters, and those of a message are neighbours.
    """
    if asked["by_time"] or asked["direction"] or _bound(asked, NO_LT) != (0, NO_LT):
        return 0, 0
    lists = [*_list_postings(segment, asked), range(segment.messages.table.count)]
    some = lists[0][:: -1 if asked["descending"] else 1][: min(asked["offset"], MAX_WALKED) + 1]
    hashes = np.asarray(segment.messages.hashes)[np.asarray(some, np.int64)]
    starts = np.flatnonzero(hashes[1:] != hashes[:-1]) + 1
    return len(starts), int(starts[-1]) if len(starts) else 0


_Places = list[Place[Segment]]


def _read_places(segments: Segments, asked: Mapping[str, Any], places: _Places) -> list[Any]:
    grouped = group_places(places).items()
    return [row for each in grouped for row in _read(segments, *each, asked, {})]


def _make_counter(
    segments: Segments, asked: Mapping[str, Any], read: Callable[[_Places], list[Any]]
) -> Callable[[_Places], int] | None:
    """Return what counts the messages of a walk that pass all filters; it reads few of them.

    The account of the transaction at an end is known, and the postings of op-codes are exact.
    """
    if asked["body_hash"] is not None or asked["no_source"] or asked["no_destination"]:
        return None
    if has_other_bounds(asked):
        return None
    if asked["source"] is None and asked["destination"] is None:
        return len
    checks = {segment: _make_check(segment, asked) for segment in segments.segments}

    def count(places: _Places) -> int:
        passed = [checks[segment](number) for _, segment, number in places]
        unknown = [place for place, each in zip(places, passed, strict=True) if each is None]
        if len(unknown) > MAX_READ:
            raise Declined
        return passed.count(True) + len(read(unknown))

    return count


def _make_check(segment: Segment, asked: Mapping[str, Any]) -> Callable[[int], bool | None]:
    """Return a check: is a message of the accounts asked for? None: its row must be read."""
    accounts, wanted = segment.transactions.accounts, []
    for name, end in (("source", "out"), ("destination", "in")):
        if asked[name] is not None:
            account = segment.accounts.find((asked[f"{name}_workchain"], asked[name]))
            wanted.append((segment.messages.ends[end], account))

    def check(number: int) -> bool | None:
        for rows, account in wanted:
            row = rows[number]
            if not row:
                return None
            if accounts[row - 1] != account:
                return False
        return True

    return check


def _find_by_hash(segments: Segments, asked: Mapping[str, Any]) -> dict[bytes, Any]:
    """Return the messages that pass all filters by hash: each once, however often consumed."""
    found, known = dict[bytes, Any](), dict[bytes, list[tuple[str, Hit]]]()
    for msg_hash in dict.fromkeys(asked["msg_hashes"]):
        for segment, at in reversed(segments.find_messages(msg_hash)):
            if segment.messages.hash_of(at) not in found:
                found |= {row.msg_hash: row for row in _read(segments, segment, [at], asked, known)}
    return found


def _read(
    segments: Segments,
    segment: Segment,
    numbers: Sequence[int],
    asked: Mapping[str, Any],
    known: dict[bytes, list[tuple[str, Hit]]],
) -> Iterator[Any]:
    """Yield the messages of a segment that pass all filters, each as a row of its last end.

    They have the last transactions at both ends in the requested direction, wherever they are.
    ``known`` has the ends listed so far, by hash.
    """
    direction, messages = asked["direction"], segment.messages
    fits, is_only = _make_filter(asked), len(segments.segments) == 1
    for number, row in zip(numbers, messages.read(numbers, direction), strict=True):
        if not fits(row):
            continue
        if messages.is_whole(number, is_only=is_only):
            if direction in (None, row.direction):
                yield row
            continue
        if row.msg_hash not in known:
            known[row.msg_hash] = _list_ends(_find_exactly(segments, row.msg_hash), direction)
        if known[row.msg_hash]:
            yield _name_ends(row, known[row.msg_hash])


def _find_exactly(segments: Segments, msg_hash: bytes) -> list[tuple[Segment, int]]:
    """Return the rows of a message: an external one may be consumed more than once."""
    return [(each, row) for each in segments.segments for row in each.messages.find(msg_hash)]


def _list_ends(
    messages: Iterable[tuple[Segment, int]], direction: str | None = None
) -> list[tuple[str, Hit]]:
    """Return the ends of messages, by segment and number, in a direction or in both."""
    return [
        (each, Hit(segment, row))
        for segment, number in messages
        for each, row in segment.messages.list_ends(number)
        if direction in (None, each)
    ]


def _name_ends(row: Any, ends: list[tuple[str, Hit]]) -> Any:  # noqa: ANN401 - a row
    """Return a message as a row of its last end, with the last transactions at both."""
    if len(ends) > 1:
        ends = sorted(ends, key=lambda end: (-end[1].lt, end[1].account, end[0]))
    hashes = {direction: hit.hash for direction, hit in reversed(ends)}
    direction, last = ends[0]
    if row.direction != direction:
        transactions = last.segment.transactions
        (record,) = transactions.complete(transactions.read_lists([last.row]))
        row = next(line for line in record.messages if line.msg_hash == row.msg_hash)
    own = islice(row, len(MESSAGE_COLUMNS))
    return make_row(
        Message, (*own, hashes[direction], last.lt, hashes.get("in"), hashes.get("out"))
    )


def _walk(
    segment: Segment, asked: Mapping[str, Any], first: int
) -> Iterator[tuple[tuple[int, bytes], int]]:
    """Yield the messages that may pass the filters, by creation and hash, without first rows."""
    messages, descending = segment.messages, asked["descending"]
    moment, direction = "created_at" if asked["by_time"] else "created_lt", asked["direction"]
    lists = _list_postings(segment, asked)
    span = _bound(asked, ABSENT[messages.table.numbers[moment].format])
    found = walk(messages.table, moment, span, lists, descending=descending, first=first)
    if direction is not None:
        ends = messages.ends[direction]
        found = ((at, number) for at, number in found if ends[number])
    hash_of = messages.hash_of
    if not (lists and asked["by_time"]):  # in the order of the table, or in that by time
        yield from (((at, hash_of(number)), number) for at, number in found)
        return
    for at, tied in groupby(found, key=itemgetter(0)):
        yield from sorted((((at, hash_of(row)), row) for _, row in tied), reverse=descending)


def _list_postings(segment: Segment, asked: Mapping[str, Any]) -> list[Sequence[int]]:
    """Return the rows that may have the value of each filter with postings, the fewest first."""
    table = segment.messages.table
    lists = [table.postings[name].find(asked[name]) for name in _EQUAL if asked[name] is not None]
    return sorted(lists, key=len)


def _bound(asked: Mapping[str, Any], absent: int) -> tuple[int, int]:
    """Return the range of moments; ``absent`` stands for none, and comes last."""
    unit = "utime" if asked["by_time"] else "lt"
    low, high = bound(asked[f"start_{unit}"], asked[f"end_{unit}"])
    if asked["exclude_externals"] or any(asked[name] is not None for name in _BOUNDS):
        high = min(high, absent - 1)
    return (max(low, absent) if asked["only_externals"] else low), high


def _make_filter(asked: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Return the check whether a message passes all filters but the direction."""
    equal = [(name, asked[name]) for name in _EQUAL if asked[name] is not None]
    for end in ("source", "destination"):
        if asked[end] is not None:
            equal.append((f"{end}_workchain", asked[f"{end}_workchain"]))
        if asked.get(f"no_{end}"):
            equal.append((end, None))
    ranges = {
        name: (asked.get(f"start_{unit}"), asked.get(f"end_{unit}"))
        for name, unit in (("created_lt", "lt"), ("created_at", "utime"))
    }
    spans = [(name, *bound(*ends)) for name, ends in ranges.items() if ends != (None, None)]
    only, without = asked.get("only_externals"), asked.get("exclude_externals")

    def fits(row: Any) -> bool:  # noqa: ANN401 - a row
        if without if row.created_lt is None else only:
            return False
        for name, value in equal:
            if getattr(row, name) != value:
                return False
        for name, low, high in spans:
            moment = getattr(row, name)
            if moment is None or not low <= moment <= high:
                return False
        return True

    return fits


def read_lines(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/message_rows`` of messages by their hashes."""
    if not asked["msg_hashes"]:
        raise Declined
    tx_hashes, segments = set(asked["tx_hashes"]), index.segments
    return [
        {name: line[name] for name in _LINE}
        for msg_hash in dict.fromkeys(asked["msg_hashes"])
        for segment, number in _find_exactly(segments, msg_hash)
        for end in ENDS
        for line in segment.messages.read([number], end)
        if line.direction == end
        and line.tx_hash in tx_hashes
        and asked["first_lt"] <= line.tx_lt <= asked["last_lt"]
    ]


def list_ends(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/transactions_of_messages``."""
    segments = index.segments
    places = (place for each in asked["msg_hashes"] for place in segments.find_messages(each))
    ends = _list_ends(places)
    return [{"tx_hash": tx_hash} for tx_hash in dict.fromkeys(hit.hash for _, hit in ends)]


def list_end_transactions(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_by_message``."""
    segments = index.segments
    if asked["msg_hashes"]:
        hashes = _find_by_hash(segments, asked)
        places = (place for each in hashes for place in _find_exactly(segments, each))
        found = [hit for _, hit in _list_ends(places, asked["direction"])]
    else:
        found = _find_ends(segments, asked, asked["offset"] + asked["limit"])
    hits = {(hit.segment, hit.row): hit for hit in found}
    return cut_hits(hits.values(), asked)


def _find_ends(segments: Segments, asked: Mapping[str, Any], most: int) -> list[Hit]:
    """Return the first transactions of messages that pass all filters, and those of their time."""
    fits = _make_filter(asked)
    seen: set[tuple[Segment, int]] = set()

    def read(places: list[tuple[int, Segment, Any]]) -> list[Hit]:
        hits = []
        for segment, pairs in group_places(places).items():
            numbers = list({number for _, number in pairs})
            lines = dict(zip(numbers, segment.messages.read(numbers), strict=True))
            for row, number in pairs:
                if (segment, row) not in seen and fits(lines[number]):
                    seen.add((segment, row))
                    hits.append(Hit(segment, row))
        return hits

    descending = asked["descending"]
    walks: list[Any] = [
        (segment, _walk_ends(_list_ends_of(segment, asked), most, descending=descending))
        for segment in segments.segments
    ]
    return read_first(merge_walks(walks, descending=descending), read, most)


class _Ends(NamedTuple):
    """Ends of messages: logical time and row of each transaction, and number of its message."""

    lts: np.ndarray
    rows: np.ndarray
    numbers: np.ndarray


def _walk_ends(ends: _Ends, most: int, *, descending: bool) -> Iterator[tuple[int, Any]]:
    """Yield logical times, each with row and message, in order; the first are sorted first."""
    keys = -ends.lts if descending else ends.lts
    parts = [np.arange(len(keys))]
    few = 2 * most + 1
    if few < len(keys):
        near = keys <= np.partition(keys, few - 1)[few - 1]
        parts = [np.flatnonzero(near), np.flatnonzero(~near)]
    for part in parts:
        places = part[np.argsort(keys[part])]
        lts, rows, numbers = (values[places].tolist() for values in ends)
        yield from zip(lts, zip(rows, numbers, strict=True), strict=True)


def _list_ends_of(segment: Segment, asked: Mapping[str, Any]) -> _Ends:
    """Return transactions at the ends of messages that may pass filters, which have postings."""
    lists = _list_postings(segment, asked)
    if not lists or len(lists[0]) > MAX_ENDS:
        raise Declined
    found = lists[0] if len(lists) == 1 else [row for row in lists[0] if has_row(lists[1:], row)]
    numbers = np.asarray(found, np.uint32)
    directions = [each for each in ENDS if asked["direction"] in (None, each)]
    rows = np.concatenate([np.asarray(segment.messages.ends[each])[numbers] for each in directions])
    present = rows > 0
    rows, numbers = rows[present] - 1, np.tile(numbers, len(directions))[present]
    return _Ends(np.asarray(segment.transactions.lt)[rows], rows, numbers)
