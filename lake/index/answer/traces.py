"""Traces and the transactions in them, from segments."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.declined import Declined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.page.merge import Hit
    from tonlake.lake.index.segments import Segments

Row = dict[str, Any]

MOST_OF_ACCOUNT = 1000
"""Transactions of an account that are read to find its traces."""

_FILTERS = ("mc_seqno", "start_utime", "end_utime", "start_lt", "end_lt", "after_end")


def list_transaction_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/trace_ids_of_transactions``."""
    return _name_traces(index.traces, asked["hashes"])


def list_message_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/trace_ids_of_messages``."""
    segments = index.traces
    found = (line.tx_hash for each in asked["msg_hashes"] for line in segments.find_messages(each))
    return _name_traces(segments, found)


def _name_traces(segments: Segments, tx_hashes: Iterable[bytes]) -> list[Row]:
    hits = map(segments.find_transaction, tx_hashes)
    found = dict.fromkeys(hit["trace_id"] for hit in hits if hit is not None)
    return [{"trace_id": trace_id} for trace_id in found if trace_id is not None]


def find_transaction_traces(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_traces``."""
    hits = list(map(index.traces.find_transaction, dict.fromkeys(asked["hashes"])))
    if None in hits:  # the lake may have traces of transactions that it does not have
        raise Declined
    return [hit for hit in hits if hit is not None and hit["trace_id"] is not None]


def find_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/traces_by_id`` without filters, where all of the traces are complete."""
    return _cut_page(index.traces, asked["trace_ids"], asked)


def list_account_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/traces_of_account`` without filters, of accounts with few transactions."""
    segments = index.traces
    lists = segments.list_account((asked["workchain"], asked["account"]))
    if sum(listed.size for listed in lists) > MOST_OF_ACCOUNT:
        raise Declined
    found = dict.fromkeys(
        listed.segment.traces.trace_of(row)
        for listed in lists
        for row in listed.rows[listed.start : listed.end]
    )
    return _cut_page(segments, (each for each in found if each is not None), asked)


def _cut_page(
    segments: Segments, trace_ids: Iterable[bytes], asked: Mapping[str, Any]
) -> list[Row]:
    if asked["by_time"] or any(asked[name] is not None for name in _FILTERS):
        raise Declined
    rows = []
    for trace_id in dict.fromkeys(trace_ids):
        row = segments.find_trace(trace_id)
        if row is None:
            raise Declined
        rows.append(row)
    rows.sort(key=itemgetter("end_lt", "trace_id"), reverse=asked["descending"])
    return rows[asked["offset"] :][: asked["limit"]]


def list_members(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/trace_transactions``."""
    segments, trace_ids = index.traces, dict.fromkeys(asked["trace_ids"])
    first, last = asked["first_lt"], asked["last_lt"]
    lists = [segments.list_trace(trace_id) for trace_id in trace_ids]
    found = [hit for listed in lists for hit in listed if first <= hit["lt"] <= last]
    if len(lists) > 1:
        found.sort(key=itemgetter("lt", "workchain", "account"))
    return found


def find_adjacent(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_adjacent`` of transactions whose trace is known."""
    segments, tx_hash, direction = index.traces, asked["hash"], asked["direction"]
    own = segments.find_transaction(tx_hash)
    trace_id = None if own is None else own["trace_id"]
    if own is None or trace_id is None:
        raise Declined
    return [
        member
        for member in segments.list_trace(trace_id)
        if (direction != "out" and member["hash"] == own["parent_hash"])
        or (direction != "in" and member["parent_hash"] == tx_hash)
    ]
