"""Messages by hash, opcode, body or account, and their transactions, from segments."""

from __future__ import annotations

from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Literal

from tonlake.lake.index.answer import span
from tonlake.lake.index.answer.transactions import SPANS, cut_sorted
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.correspondence import SCANNED, list_of_account
from tonlake.lake.index.page.ends import list_transactions
from tonlake.lake.index.page.filters import fits, list_filters
from tonlake.lake.index.page.merge import MessageQuery, find_key, read_messages
from tonlake.lake.index.page.messages import (
    PageRequest,
    list_external,
    list_of_key,
)
from tonlake.lake.index.segment.ends import NO_LT
from tonlake.lake.index.segment.postings import cut_hash
from tonlake.lake.index.segment.record import MESSAGE_COLUMNS, Found
from tonlake.lake.index.segments import read_found

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.page.hit import Hit
    from tonlake.lake.index.page.merge import Listed
    from tonlake.lake.index.segment.segment import Filter, Segment
    from tonlake.lake.index.segments import Segments

Row = dict[str, Any]

_PAGE = frozenset({"descending", "limit", "offset"})
_LINE = ("tx_lt", "tx_hash", *MESSAGE_COLUMNS)


def list_messages(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/messages`` by hashes, an opcode, a body, an account or a range."""
    names = [
        name
        for name, value in asked.items()
        if name not in _PAGE and value is not None and value is not False and value != []
    ]
    segments = index.segments
    if names in (["opcode"], ["body_hash"]):
        column: Literal["opcode", "body_hash"] = "opcode" if "opcode" in names else "body_hash"
        page = {name: asked[name] for name in _PAGE}
        return _join(
            segments, read_messages(segments.segments, MessageQuery(column, asked[column], **page))
        )
    request = _open_page(segments, asked)
    most, first = request.most, asked["offset"]
    if asked["msg_hashes"]:
        return request.sort(_find_by_hash(segments, asked, request.filters))[first:most]
    return _join(segments, _choose(index, asked)(request)[first:most], asked["direction"])


def _open_page(segments: Segments, asked: Mapping[str, Any]) -> PageRequest:
    """Return the requested page, with all filters."""
    by_time = asked["by_time"]
    first, last = (asked[f"{end}_{'utime' if by_time else 'lt'}"] for end in ("start", "end"))
    direction = asked["direction"]
    return PageRequest(
        list_filters(asked),
        partial(_keep_ends, segments, direction) if direction else list,
        by_time,
        0 if first is None else max(0, min(first, NO_LT)),
        NO_LT if last is None else max(-1, min(last, NO_LT)),
        not (asked["only_externals"] or asked["no_source"]),
        not (asked["exclude_externals"] or asked["no_destination"] or direction == "out")
        and all(asked[name] is None for name in ("source", *SPANS)),
        asked["descending"],
        asked["offset"] + asked["limit"],
    )


def _choose(index: Index, asked: Mapping[str, Any]) -> Callable[[PageRequest], list[Any]]:
    """Return the function that lists messages by the most selective filter, or by moments."""
    segments = index.segments
    every = segments.segments
    columns = ("opcode", "body_hash")
    keys = [find_key(column, asked[column]) for column in columns if asked[column] is not None]
    sizes = [_count_places(every, *key) for key in keys]
    choices: list[tuple[int, Callable[[PageRequest], list[Any]]]] = [
        (size, partial(list_of_key, every, *key)) for size, key in zip(sizes, keys, strict=True)
    ]
    source, destination = (
        (asked[f"{end}_workchain"], asked[end]) for end in ("source", "destination")
    )
    if None not in source:
        lists = segments.list_account(source)
        answer = partial(list_of_account, every, lists, source, is_source=True)
        choices.append((_count_rows(lists), answer))
    if None not in destination:
        lists = segments.list_account(destination)
        answer = partial(list_of_account, every, lists, destination, is_source=False)
        alone = _count_places(every, "alone_to", cut_hash(destination[1]))
        if not asked["by_time"] and all(segment.leads_to_consumers for segment in every):
            choices += [
                (alone + size // SCANNED, partial(answer, key=key))
                for size, key in zip(sizes, keys, strict=True)
            ]
        if None not in source:
            lists = segments.cut_senders(lists, source)
            answer = partial(
                list_of_account, every, lists, destination, is_source=False, sender=source
            )
        choices.append((alone + _count_rows(lists), answer))
    if choices:
        return min(choices, key=itemgetter(0))[1]
    return partial(_list_all, index, asked)


def _count_places(segments: Sequence[Segment], name: str, key: int) -> int:
    found = (getattr(segment, name).find(key) for segment in segments)
    return sum(end - start for start, end in found)


def _count_rows(lists: Sequence[Listed]) -> int:
    return sum(listed.size for listed in lists)


def _list_all(index: Index, asked: Mapping[str, Any], request: PageRequest) -> list[Any]:
    return request.fill(
        partial(list_external, index.segments.segments), partial(span.list_messages, index, asked)
    )


def _join(segments: Segments, lines: list[Any], direction: str | None = None) -> list[Any]:
    """Return the last end of each message, given one end; ``direction`` limits the ends."""
    # In one direction, only an external message has several ends.
    asked = [line for line in lines if direction is None or line.created_lt is None]
    others = {
        asked[number].msg_hash: [end for end in ends if direction in (None, end.direction)]
        for number, ends in segments.find_other_ends(asked).items()
    }
    joined = []
    for line in lines:
        ends = [line, *others.get(line.msg_hash, ())]
        joined.append((max(ends, key=_tx_lt), ends))
    own = iter(read_found([last for last, _ in joined if isinstance(last, Found)]))
    return [
        _name_ends(next(own) if isinstance(last, Found) else last, ends) for last, ends in joined
    ]


def _keep_ends(segments: Segments, direction: str, lines: list[Any]) -> list[Any]:
    """Return an end in a direction of each message that has one."""
    kept = {line.msg_hash: line for line in lines if line.direction == direction}
    others = [line for line in lines if line.direction != direction]
    found = chain.from_iterable(segments.find_other_ends(others).values())
    kept |= {end.msg_hash: end for end in found if end.direction == direction}
    return list(kept.values())


def _find_by_hash(
    segments: Segments, asked: Mapping[str, Any], filters: Sequence[Filter]
) -> dict[bytes, Any]:
    """Return the last end of each message by hash, of those ends that pass all filters."""
    ends: dict[bytes, dict[tuple[bytes, str, int], Any]] = {}
    for msg_hash in asked["msg_hashes"]:
        for line in segments.find_messages(msg_hash):
            if asked["direction"] in (None, line.direction) and fits(line, filters):
                place = line.tx_hash, line.direction, line.msg_index
                ends.setdefault(line.msg_hash, {})[place] = line
    found = {msg_hash: list(lines.values()) for msg_hash, lines in ends.items()}
    return {
        msg_hash: _name_ends(max(lines, key=_tx_lt), lines) for msg_hash, lines in found.items()
    }


def _name_ends(last: Any, ends: Sequence[Any]) -> Any:  # noqa: ANN401 - a row
    """Return the last end of a message, with the last transactions at both ends."""
    hashes = {end.direction: end.tx_hash for end in sorted(ends, key=_tx_lt)}
    last.in_tx_hash, last.out_tx_hash = hashes.get("in"), hashes.get("out")
    return last


_tx_lt = attrgetter("tx_lt")


def read_lines(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/message_rows`` of messages by their hashes."""
    if not asked["msg_hashes"]:
        raise Declined
    tx_hashes = set(asked["tx_hashes"])
    return [
        {name: line[name] for name in _LINE}
        for msg_hash in dict.fromkeys(asked["msg_hashes"])
        for line in index.segments.find_messages(msg_hash)
        if line.msg_hash == msg_hash
        and line.tx_hash in tx_hashes
        and asked["first_lt"] <= line.tx_lt <= asked["last_lt"]
    ]


def list_ends(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/transactions_of_messages``."""
    segments = index.segments
    found = (line.tx_hash for each in asked["msg_hashes"] for line in segments.find_messages(each))
    return [{"tx_hash": tx_hash} for tx_hash in dict.fromkeys(found)]


def list_end_transactions(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_by_message`` by hashes, an opcode or a body."""
    segments, filters = index.segments, list_filters(asked)
    if asked["msg_hashes"]:
        tx_hashes = {
            line.tx_hash
            for msg_hash in asked["msg_hashes"]
            for line in segments.find_messages(msg_hash)
            if asked["direction"] in (None, line.direction) and fits(line, filters)
        }
    else:
        column = "opcode" if asked["body_hash"] is None else "body_hash"
        if asked[column] is None:
            raise Declined
        most = asked["offset"] + asked["limit"]
        found = list_transactions(
            segments.segments,
            *find_key(column, asked[column]),
            filters,
            partial(_read_ends, segments, asked["direction"]),
            descending=asked["descending"],
            most=most,
        )
        tx_hashes = set(found)
    hits = map(segments.find_transaction, tx_hashes)
    return cut_sorted((hit for hit in hits if hit is not None), asked)


def _read_ends(segments: Segments, direction: str | None, lines: Sequence[Any]) -> dict[bytes, int]:
    """Return the logical times of the transactions at the ends of messages, by hash.

    ``direction`` limits this to one end; None: both.
    """
    # Postings have every end of an external message, which has no creation time.
    made = [line for line in lines if line.created_lt is not None]
    others = chain.from_iterable(segments.find_other_ends(made).values())
    return {
        end.tx_hash: end.tx_lt for end in (*lines, *others) if direction in (None, end.direction)
    }
