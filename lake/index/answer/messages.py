"""Messages by hash, opcode or body, and the transactions at their ends, from segments."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from tonlake.lake.index.answer.transactions import cut_sorted
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.merge import MessageQuery, creation_of, read_messages
from tonlake.lake.index.segment.record import MESSAGE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.page.merge import Hit
    from tonlake.lake.index.segments import Segments

Row = dict[str, Any]

_PAGE = frozenset({"descending", "limit", "offset"})
_KEYS = ("msg_hashes", "body_hash", "opcode")
_LINE = ("tx_lt", "tx_hash", *MESSAGE_COLUMNS)


def _list_filters(asked: Mapping[str, Any]) -> list[str]:
    """Return the filters that filter anything."""
    return [
        name
        for name, value in asked.items()
        if name not in _PAGE and value is not None and value is not False and value != []
    ]


def list_messages(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/messages`` where hashes, an opcode or a body is the only filter."""
    filters = _list_filters(asked)
    if len(filters) != 1 or filters[0] not in _KEYS:
        raise Declined
    segments = index.segments
    if asked["msg_hashes"]:
        return _list_by_hash(segments, asked)
    column: Literal["opcode", "body_hash"] = "body_hash" if asked["opcode"] is None else "opcode"
    page = {name: asked[name] for name in _PAGE}
    lines = read_messages(segments.segments, MessageQuery(column, asked[column], **page))
    for line in lines:
        if line.direction == "in":
            line.in_tx_hash = line.tx_hash
        else:
            line.out_tx_hash = line.tx_hash
    for number, others in segments.find_other_ends(lines).items():
        lines[number] = _join_ends([lines[number], *others])
    return lines


def _list_by_hash(segments: Segments, asked: Mapping[str, Any]) -> list[Any]:
    ends: dict[bytes, dict[tuple[bytes, str, int], Any]] = {}
    for msg_hash in asked["msg_hashes"]:
        for line in segments.find_messages(msg_hash):
            place = line.tx_hash, line.direction, line.msg_index
            ends.setdefault(line.msg_hash, {})[place] = line
    found = [_join_ends(list(lines.values())) for lines in ends.values()]
    found.sort(key=creation_of, reverse=asked["descending"])
    return found[asked["offset"] :][: asked["limit"]]


def _join_ends(lines: Sequence[Any]) -> Any:  # noqa: ANN401 - a row
    """Return the last end of a message, with the last transactions at both."""
    ends = {line.direction: line.tx_hash for line in sorted(lines, key=_tx_lt)}
    last = max(lines, key=_tx_lt)
    last.in_tx_hash, last.out_tx_hash = ends.get("in"), ends.get("out")
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
    """Answer ``v3/transaction_keys_by_message`` where hashes and a direction are all filters."""
    if not asked["msg_hashes"] or not {"msg_hashes", "direction"}.issuperset(_list_filters(asked)):
        raise Declined
    segments = index.segments
    tx_hashes = {
        line.tx_hash
        for msg_hash in asked["msg_hashes"]
        for line in segments.find_messages(msg_hash)
        if asked["direction"] in (None, line.direction)
    }
    hits = map(segments.find_transaction, tx_hashes)
    return cut_sorted((hit for hit in hits if hit is not None), asked)
