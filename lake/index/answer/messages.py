"""Messages by hash or by any filters, and their transactions, from segments."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import item_bytes
from tonlake.lake.index.page import (
    Declined,
    Hit,
    bound,
    cut_hits,
    has_row,
    merge_walks,
    read_first,
    walk,
)
from tonlake.lake.index.segment.declared import (
    ABSENT,
    MESSAGE_COLUMNS,
    NO_LT,
    Message,
    make_row,
)
from tonlake.lake.index.segment.segment import ENDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tonlake.lake.index.index import Index, Segments
    from tonlake.lake.index.segment.segment import Segment

Row = dict[str, Any]

MAX_ENDS = 1_000_000
"""Most messages of a key whose transactions are compared."""

_LINE = ("tx_lt", "tx_hash", *MESSAGE_COLUMNS)
_EQUAL = ("source", "destination", "opcode", "body_hash")
"""Parameters that are columns with postings."""


class _Found(NamedTuple):
    """A message in a segment, and its ends in the requested direction, wherever they are."""

    segment: Segment
    row: Any
    ends: list[tuple[str, Hit]]


def list_messages(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/messages``."""
    segments, most = index.segments, asked["offset"] + asked["limit"]
    if asked["msg_hashes"]:
        found = _find_by_hash(segments, asked)
    else:
        found = _find_first(segments, asked, most)

    def order(each: _Found) -> tuple[int, bytes]:
        moment = each.row.created_at if asked["by_time"] else each.row.created_lt
        return NO_LT if moment is None else moment, each.row.msg_hash

    united = {each.row.msg_hash: each for each in found}
    page = sorted(united.values(), key=order, reverse=asked["descending"])
    return list(map(_show, page[asked["offset"] : most]))


def _find_by_hash(segments: Segments, asked: Mapping[str, Any]) -> list[_Found]:
    return [
        each
        for msg_hash in dict.fromkeys(asked["msg_hashes"])
        for segment, number in segments.find_messages(msg_hash)
        for each in _read(segments, segment, [number], asked)
    ]


def _find_first(segments: Segments, asked: Mapping[str, Any], most: int) -> list[_Found]:
    """Return the first messages that pass all filters, and those of the last one's moment."""
    seen: set[bytes] = set()

    def read(places: list[tuple[Any, Segment, int]]) -> list[_Found]:
        numbers: dict[Segment, list[int]] = {}
        for _, segment, number in places:
            numbers.setdefault(segment, []).append(number)
        found = {
            each.row.msg_hash: each
            for segment, listed in numbers.items()
            for each in _read(segments, segment, listed, asked)
            if each.row.msg_hash not in seen
        }
        seen.update(found)
        return list(found.values())

    places = merge_walks(
        [(segment, _walk(segment, asked)) for segment in segments.segments],
        descending=asked["descending"],
    )
    return read_first(places, read, most)


def _read(
    segments: Segments, segment: Segment, numbers: Sequence[int], asked: Mapping[str, Any]
) -> Iterator[_Found]:
    """Yield the messages of a segment that pass all filters."""
    direction, known = asked["direction"], dict[bytes, list[tuple[str, Hit]]]()
    for number, row in zip(numbers, segment.messages.read(numbers), strict=True):
        if _fits(row, asked):
            ends = _find_ends_here(segments, segment, number, row) or known.get(row.msg_hash)
            if ends is None:
                ends = known[row.msg_hash] = _find_all_ends(segments, row.msg_hash)
            if direction is not None:
                ends = [end for end in ends if end[0] == direction]
            if ends:
                yield _Found(segment, row, ends)


def _find_ends_here(
    segments: Segments,
    segment: Segment,
    number: int,
    row: Any,  # noqa: ANN401 - a row
) -> list[tuple[str, Hit]] | None:
    """Return the ends of a message that has no others; an external one may have more."""
    own = segment.messages.list_ends(number)
    is_alone = len(segments.segments) == 1 and segment.messages.is_alone(number)
    if is_alone or (len(own) == len(ENDS) and row.created_lt is not None):
        return [(direction, Hit(segment, end)) for direction, end in own]
    return None


def _find_all_ends(segments: Segments, msg_hash: bytes) -> list[tuple[str, Hit]]:
    """Return all ends of a message: an external one may be consumed more than once."""
    return [
        (direction, Hit(each, end))
        for each in segments.segments
        for other in each.messages.find(msg_hash)
        for direction, end in each.messages.list_ends(other)
    ]


def _show(found: _Found) -> Any:  # noqa: ANN401 - a row
    """Return a message as a row of its last end, with the last transactions at both."""
    ends = found.ends
    if len(ends) > 1:
        ends = sorted(ends, key=lambda end: (-end[1].lt, end[1].account, end[0]))
    hashes = {direction: hit.hash for direction, hit in reversed(ends)}
    (direction, last), row = ends[0], found.row
    if row.direction != direction:
        (record,) = last.segment.transactions.read_records([last.row])
        row = next(line for line in record.messages if line.msg_hash == row.msg_hash)
    own = islice(row, len(MESSAGE_COLUMNS))
    return make_row(
        Message, (*own, hashes[direction], last.lt, hashes.get("in"), hashes.get("out"))
    )


def _walk(segment: Segment, asked: Mapping[str, Any]) -> Iterator[tuple[tuple[int, bytes], int]]:
    """Yield the messages that may pass the filters, by creation; those without one by hash."""
    table, moment = segment.messages.table, "created_at" if asked["by_time"] else "created_lt"
    absent = ABSENT[table.numbers[moment].format]
    found = walk(
        table,
        moment,
        _bound(asked, absent),
        _list_postings(segment, asked),
        descending=asked["descending"],
    )
    for at, number in found:
        yield (at, segment.messages.hash_of(number) if at == absent else b""), number


def _list_postings(segment: Segment, asked: Mapping[str, Any]) -> list[Sequence[int]]:
    """Return the rows that may have the value of each filter with postings, the fewest first."""
    table = segment.messages.table
    lists = [table.find(name, asked[name]) for name in _EQUAL if asked[name] is not None]
    return sorted(lists, key=len)


def _bound(asked: Mapping[str, Any], absent: int) -> tuple[int, int]:
    """Return the range of moments; ``absent`` stands for none, and comes last."""
    unit = "utime" if asked["by_time"] else "lt"
    low, high = bound(asked[f"start_{unit}"], asked[f"end_{unit}"])
    if asked["exclude_externals"]:
        high = min(high, absent - 1)
    return (max(low, absent) if asked["only_externals"] else low), high


def _fits(row: Any, asked: Mapping[str, Any]) -> bool:  # noqa: ANN401 - a row
    """Whether a message passes all filters but its direction."""
    if asked.get("exclude_externals") and row.created_lt is None:
        return False
    if asked.get("only_externals") and row.created_lt is not None:
        return False
    for end in ("source", "destination"):
        if asked.get(f"no_{end}") and getattr(row, end) is not None:
            return False
        if asked[end] is not None and row[f"{end}_workchain"] != asked[f"{end}_workchain"]:
            return False
    return (
        all(asked[name] in (None, getattr(row, name)) for name in _EQUAL)
        and _is_within(row.created_lt, asked.get("start_lt"), asked.get("end_lt"))
        and _is_within(row.created_at, asked.get("start_utime"), asked.get("end_utime"))
    )


def _is_within(value: int | None, first: int | None, last: int | None) -> bool:
    if (first, last) == (None, None):
        return True
    low, high = bound(first, last)
    return value is not None and low <= value <= high


def _list_lines(segments: Segments, msg_hash: bytes) -> Iterator[Any]:
    """Yield a message by hash as a row of each transaction that has it."""
    for segment, number in segments.find_messages(msg_hash):
        yield from segment.messages.list_lines(number)


def read_lines(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/message_rows`` of messages by their hashes."""
    if not asked["msg_hashes"]:
        raise Declined
    tx_hashes = set(asked["tx_hashes"])
    return [
        {name: line[name] for name in _LINE}
        for msg_hash in dict.fromkeys(asked["msg_hashes"])
        for line in _list_lines(index.segments, msg_hash)
        if line.msg_hash == msg_hash
        and line.tx_hash in tx_hashes
        and asked["first_lt"] <= line.tx_lt <= asked["last_lt"]
    ]


def list_ends(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/transactions_of_messages``."""
    lines = (line for each in asked["msg_hashes"] for line in _list_lines(index.segments, each))
    return [{"tx_hash": tx_hash} for tx_hash in dict.fromkeys(line.tx_hash for line in lines)]


def list_end_transactions(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_by_message``."""
    segments = index.segments
    if asked["msg_hashes"]:
        found = [hit for each in _find_by_hash(segments, asked) for _, hit in each.ends]
    else:
        found = _find_ends(segments, asked, asked["offset"] + asked["limit"])
    hits = {(hit.segment, hit.row): hit for hit in found}
    page = {name: asked[name] for name in ("descending", "offset", "limit")}
    return cut_hits(hits.values(), **page)


def _find_ends(segments: Segments, asked: Mapping[str, Any], most: int) -> list[Hit]:
    """Return the first transactions of messages that pass all filters, and those of their time."""
    seen: set[tuple[Segment, int]] = set()

    def read(places: list[tuple[int, tuple[Segment, _Ends], int]]) -> list[Hit]:
        hits = []
        for _, (segment, ends), place in places:
            key = segment, ends.rows[place]
            (row,) = segment.messages.read([ends.numbers[place]])
            if key not in seen and _fits(row, asked):
                seen.add(key)
                hits.append(Hit(*key))
        return hits

    walks = []
    for segment in segments.segments:
        ends = _order_ends(segment, asked)
        walks.append(((segment, ends), ends.walk(descending=asked["descending"])))
    return read_first(merge_walks(walks, descending=asked["descending"]), read, most)


class _Ends(NamedTuple):
    """Transactions at the ends of messages, by logical time, with the messages."""

    lts: memoryview
    rows: memoryview
    numbers: memoryview

    def walk(self, *, descending: bool) -> Iterator[tuple[int, int]]:
        """Yield the logical times, with places in the other columns."""
        places = range(len(self.lts))
        for at in reversed(places) if descending else places:
            yield self.lts[at], at


def _order_ends(segment: Segment, asked: Mapping[str, Any]) -> _Ends:
    """Return the transactions of a segment at the ends of messages that may pass the filters.

    Raises:
        Declined: there is no filter with postings, or there are too many messages.
    """
    lists = _list_postings(segment, asked)
    if not lists or len(lists[0]) > MAX_ENDS:
        raise Declined
    found = lists[0] if len(lists) == 1 else [row for row in lists[0] if has_row(lists[1:], row)]
    numbers = pa.array(found, pa.uint32())
    every = [
        (ends, numbers)
        for direction in ENDS
        if asked["direction"] in (None, direction)
        for ends in (segment.messages.take_ends(direction, numbers),)
    ]
    rows = pa.concat_arrays([ends for ends, _ in every])
    numbers = pa.concat_arrays([each for _, each in every])
    present = pc.greater(rows, 0)
    rows = pc.cast(pc.subtract(rows.filter(present), 1), pa.uint32())
    numbers = numbers.filter(present)
    lts = segment.transactions.take_lts(rows)
    order = pc.sort_indices(lts)
    columns = (each.take(order) for each in (lts, rows, numbers))
    codes: tuple[Any, ...] = ("q", "I", "I")
    views = zip(columns, codes, strict=True)
    return _Ends(*(item_bytes(each).cast(code) for each, code in views))
