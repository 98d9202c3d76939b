"""Exact keys and pages of one account or block: from look-ups where a snapshot has them.

Every function gives the rows that the named query in its docstring gives. Rows of look-ups are
asked by column name, as dicts are. Where a snapshot has no look-ups the query itself is asked.
"""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from lake.lookup.merge import Hit, read_page, read_timed_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.lookup.merge import Listed
    from queries.reader import Reader

Row = dict[str, Any]
Key = Row | Hit
"""A transaction found: its place in look-ups, or its hash and logical time by name."""

Account = tuple[int, bytes]
"""Workchain and account id."""

StateKey = tuple[int, bytes, bytes]
"""Workchain, account id and state hash."""


class Span(NamedTuple):
    """Bounds of a page of transactions; None bounds nothing, and both ends are included."""

    start_utime: int | None = None
    end_utime: int | None = None
    start_lt: int | None = None
    end_lt: int | None = None


class Slice(NamedTuple):
    """Which rows of a list to give."""

    limit: int
    offset: int = 0
    descending: bool = True


class Transactions(NamedTuple):
    """Transactions with what belongs to them."""

    rows: list[Any]
    messages: dict[bytes, list[Any]]
    states: dict[StateKey, Any]


def find_transactions(reader: Reader, hashes: Sequence[bytes]) -> list[Row]:
    """Return the keys of transactions by hash, as ``v3/transaction_keys_by_hash``."""
    lookups = reader.lookups
    if lookups is None:
        return reader.rows("v3/transaction_keys_by_hash", hashes=list(hashes))
    hits = (lookups.find_transaction(tx_hash) for tx_hash in dict.fromkeys(hashes))
    return [_key(hit) for hit in hits if hit is not None]


def find_account_page(
    reader: Reader, workchain: int, account: bytes, span: Span, page: Slice
) -> Sequence[Key]:
    """Return the keys of an account's transactions, as ``v3/transaction_keys_of_account``."""
    lookups = reader.lookups
    if lookups is None:
        return reader.rows(
            "v3/transaction_keys_of_account",
            workchain=workchain,
            account=account,
            **span._asdict(),
            **page._asdict(),
        )
    lists = [
        listed.cut(span.start_lt, span.end_lt).cut_time(span.start_utime, span.end_utime)
        for listed in lookups.list_account(account, workchain)
    ]
    return _read_keys(lists, page)


def find_block_page(reader: Reader, mc_seqno: int, page: Slice) -> Sequence[Key] | None:
    """Return the keys of a masterchain block's transactions, as ``v3/transaction_keys`` does.

    None without look-ups.
    """
    if reader.lookups is None:
        return None
    return _read_keys(reader.lookups.list_block(mc_seqno), page)


def find_failed_page(
    reader: Reader, first: int | None, last: int | None, page: Slice
) -> Sequence[Key] | None:
    """Return the keys of aborted transactions of a span of time, as ``v3/transaction_keys`` does.

    None without look-ups, or where the page is too deep for them.
    """
    if reader.lookups is None:
        return None
    lists = reader.lookups.list_failed(first, last)
    return read_timed_page(lists, descending=page.descending, offset=page.offset, limit=page.limit)


def _read_keys(lists: Sequence[Listed], page: Slice) -> list[Key]:
    return list(read_page(lists, descending=page.descending, offset=page.offset, limit=page.limit))


def _key(hit: Hit) -> Row:
    run, row = hit
    return {"hash": run.hash_of(row), "lt": run.lt[row], "hit": hit}


class Record(NamedTuple):
    """A transaction as queries give it; look-ups have a type of the same fields.

    ``messages`` stand by direction, ``in`` first, and place. ``before`` and ``after`` are the
    states around it, None where they are not known.
    """

    row: Row
    messages: list[Row]
    before: Row | None
    after: Row | None


def read_records(reader: Reader, keys: Sequence[Key]) -> Sequence[Any]:
    """Return the transactions of keys in their order, each as a ``Record``.

    As ``v3/transaction_rows``, ``v3/message_rows`` and ``v3/account_states_by_hash``.
    """
    lookups = reader.lookups
    if lookups is None:
        return _query_records(reader, keys) if keys else []
    found = [
        key if isinstance(key, Hit) else key.get("hit") or lookups.find_transaction(key["hash"])
        for key in keys
    ]
    records = lookups.read_records([hit for hit in found if hit is not None])
    if lookups.stale_traces and records:
        _renew_traces(reader, [record.row for record in records])
    return records


def read_transactions(reader: Reader, keys: Sequence[Key]) -> Transactions:
    """Return the same as ``read_records``, messages and states apart from the rows."""
    found = Transactions([], {}, {})
    for row, messages, before, after in map(_parts_of, read_records(reader, keys)):
        found.rows.append(row)
        found.messages[row["hash"]] = messages
        account = row["workchain"], row["account"]
        if before is not None:
            found.states[*account, row["account_state_hash_before"]] = before
        if after is not None:
            found.states[*account, row["account_state_hash_after"]] = after
    return found


_parts_of = attrgetter(*Record._fields)


def _renew_traces(reader: Reader, rows: Sequence[Any]) -> None:
    """Take trace ids from the tables where they changed since a run was made."""
    lts = [row.lt for row in rows]
    found = reader.rows(
        "v3/transaction_traces",
        hashes=[row.hash for row in rows],
        first_lt=min(lts),
        last_lt=max(lts),
    )
    trace_ids = {trace["hash"]: trace["trace_id"] for trace in found}
    for row in rows:
        row.trace_id = trace_ids.get(row.hash)


def _query_records(reader: Reader, keys: Sequence[Key]) -> list[Record]:
    named = [_key(key) if isinstance(key, Hit) else key for key in keys]
    hashes = [key["hash"] for key in named]
    lts = [key["lt"] for key in named]
    span = {"first_lt": min(lts), "last_lt": max(lts)}
    found = {row["hash"]: row for row in reader.rows("v3/transaction_rows", hashes=hashes, **span)}
    messages: dict[bytes, list[Row]] = {tx_hash: [] for tx_hash in hashes}
    lines = reader.rows("v3/message_rows", tx_hashes=hashes, msg_hashes=[], **span)
    for line in sorted(lines, key=itemgetter("direction", "msg_index")):
        messages[line["tx_hash"]].append(line)
    rows = [found[tx_hash] for tx_hash in hashes]
    states = _query_states(reader, rows)
    return [
        Record(
            row,
            messages[row["hash"]],
            states.get((row["workchain"], row["account"], row["account_state_hash_before"])),
            states.get((row["workchain"], row["account"], row["account_state_hash_after"])),
        )
        for row in rows
    ]


def _query_states(reader: Reader, rows: Sequence[Row]) -> dict[StateKey, Row]:
    wanted = {
        (row["workchain"], row["account"], row[column])
        for row in rows
        for column in ("account_state_hash_before", "account_state_hash_after")
    }
    workchains, accounts, hashes = (list(part) for part in zip(*sorted(wanted), strict=True))
    found = reader.rows(
        "v3/account_states_by_hash", workchains=workchains, accounts=accounts, hashes=hashes
    )
    return {(row["workchain"], row["account"], row["hash"]): row for row in found}


def find_states(reader: Reader, accounts: Sequence[Account]) -> dict[Account, Row]:
    """Return the newest states of accounts that are known, in their order, as ``v3/accounts``."""
    found = zip(accounts, list_states(reader, accounts), strict=True)
    return {account: state for account, state in found if state is not None}


def list_states(reader: Reader, accounts: Sequence[Account]) -> Sequence[Row | None]:
    """Return the newest state of each account, None where none is known, as ``v3/accounts``."""
    if not accounts:
        return []
    if reader.lookups is not None:
        return reader.lookups.newest_states(accounts)
    rows = reader.rows(
        "v3/accounts",
        workchains=[workchain for workchain, _ in accounts],
        accounts=[account for _, account in accounts],
    )
    known = {(row["workchain"], row["account"]): row for row in rows}
    return [known.get(account) for account in accounts]


def rank_accounts(reader: Reader, limit: int, offset: int) -> list[tuple[int, bytes, int]]:
    """Return workchain, account and balance, the richest first, as ``v3/accounts_by_balance``."""
    if reader.lookups is not None:
        ranked = reader.lookups.rank_accounts(offset, limit)
        return [(workchain, account, balance) for balance, workchain, account in ranked]
    rows = reader.rows("v3/accounts_by_balance", limit=limit, offset=offset)
    return [(row["workchain"], row["account"], row["balance"]) for row in rows]
