"""Traces by id, by transaction or by message: from look-ups where a snapshot has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from queries.exact import Slice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lake.lookup.lookups import Lookups
    from queries.reader import Reader

Row = dict[str, Any]

MOST_OF_ACCOUNT = 1000
"""Traces of an account with more transactions are left to the named query."""


def find_trace_ids(
    reader: Reader, *, tx_hashes: Sequence[bytes] = (), msg_hashes: Sequence[bytes] = ()
) -> list[bytes]:
    """Return the traces of transactions or of messages, each once, in no order.

    As ``v3/trace_ids_of_transactions`` and ``v3/trace_ids_of_messages``.
    """
    lookups = _usable(reader)
    if lookups is not None:
        ends = (line.tx_hash for wanted in msg_hashes for line in lookups.find_messages(wanted))
        return list(dict.fromkeys(_trace_ids(lookups, [*tx_hashes, *ends])))
    if tx_hashes:
        found = reader.rows("v3/trace_ids_of_transactions", hashes=list(tx_hashes))
    else:
        found = reader.rows("v3/trace_ids_of_messages", msg_hashes=list(msg_hashes))
    return [row["trace_id"] for row in found]


def _usable(reader: Reader) -> Lookups | None:
    """Return look-ups that are right about traces."""
    lookups = reader.lookups
    return None if lookups is None or lookups.stale_traces else lookups


def _trace_ids(lookups: Lookups, tx_hashes: Iterable[bytes]) -> Iterable[bytes]:
    for tx_hash in tx_hashes:
        hit = lookups.find_transaction(tx_hash)
        trace_id = None if hit is None else hit.run.traces.trace_of(hit.row)
        if trace_id is not None:
            yield trace_id


def find_traces(reader: Reader, trace_ids: Sequence[bytes], page: Slice) -> list[Row] | None:
    """Return a page of traces by when they ended, as ``v3/traces_by_id`` without filters.

    None where one of them is not complete, or there are no look-ups.
    """
    lookups = _usable(reader)
    if lookups is None:
        return None
    rows = []
    for trace_id in dict.fromkeys(trace_ids):
        row = lookups.find_trace(trace_id)
        if row is None:
            return None
        rows.append(row)
    rows.sort(key=lambda row: (row["end_lt"], row["trace_id"]), reverse=page.descending)
    return rows[page.offset : page.offset + page.limit]


def find_last_ends(reader: Reader, trace_ids: Sequence[bytes]) -> tuple[int, int] | None:
    """Return the first and the last logical time at which some traces end.

    None where one of them is not complete, or there are no look-ups.
    """
    rows = find_traces(reader, trace_ids, Slice(len(trace_ids)))
    ends = [row["end_lt"] for row in rows or ()]
    return (min(ends), max(ends)) if ends else None


def list_account_traces(reader: Reader, workchain: int, account: bytes) -> list[bytes] | None:
    """Return the traces with a transaction of an account, each once, in no order.

    None without look-ups, or where it has too many transactions to look at each.
    """
    lookups = _usable(reader)
    lists = [] if lookups is None else lookups.list_account(account, workchain)
    if lookups is None or sum(listed.size for listed in lists) > MOST_OF_ACCOUNT:
        return None
    found = (
        listed.run.traces.trace_of(row)
        for listed in lists
        for row in listed.rows[listed.start : listed.end]
    )
    return list(dict.fromkeys(trace_id for trace_id in found if trace_id is not None))


def read_members(reader: Reader, traces: Sequence[Row]) -> dict[bytes, list[Row]]:
    """Return the keys of the transactions of each trace, by trace id.

    As ``v3/trace_transactions``: by logical time, then workchain and account.
    """
    members: dict[bytes, list[Row]] = {row["trace_id"]: [] for row in traces}
    lookups = _usable(reader)
    if lookups is not None:
        return {trace_id: _list_members(lookups, trace_id) for trace_id in members}
    found = reader.rows(
        "v3/trace_transactions",
        trace_ids=list(members),
        first_lt=min(row["start_lt"] for row in traces),
        last_lt=max(row["end_lt"] for row in traces),
    )
    for member in found:
        members[member["trace_id"]].append(member)
    return members


def find_adjacent(reader: Reader, tx_hash: bytes, direction: str | None) -> list[Row]:
    """Return the keys of the transaction before one, and of those after it.

    As ``v3/transaction_keys_adjacent``.
    """
    lookups = _usable(reader)
    hit = None if lookups is None else lookups.find_transaction(tx_hash)
    trace_id = None if hit is None else hit.run.traces.trace_of(hit.row)
    if lookups is None or hit is None or trace_id is None:
        return reader.rows("v3/transaction_keys_adjacent", hash=tx_hash, direction=direction)
    parent = hit.run.traces.parent_of(hit.row)
    return [
        member
        for member in _list_members(lookups, trace_id)
        if (direction != "out" and member["hash"] == parent)
        or (direction != "in" and member["parent_hash"] == tx_hash)
    ]


def _list_members(lookups: Lookups, trace_id: bytes) -> list[Row]:
    return [
        {
            "hash": hit.run.hash_of(hit.row),
            "lt": hit.run.lt[hit.row],
            "trace_id": trace_id,
            "parent_hash": hit.run.traces.parent_of(hit.row),
            "hit": hit,
        }
        for hit in lookups.list_trace(trace_id)
    ]
