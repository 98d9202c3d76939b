"""Pages of transactions: their search, messages, account states and addresses."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from tonlake.api.chain.block import find_block_row, list_block_keys
from tonlake.api.request.call import Addresses, Call, Flag, Hashes, Int32, Lt, Shard
from tonlake.api.text.encoding import Address, parse_address
from tonlake.api.v3.layout.transaction import Transaction
from tonlake.api.v3.page.book import pair_addresses, read_address_book, write_address_book
from tonlake.api.v3.page.operation import (
    SpanPage,
    check_mc_seqno,
    check_no_gap,
    check_seqno,
    check_spans,
)
from tonlake.api.v3.resource.answer import AddressBook, Transactions
from tonlake.api.v3.resource.transaction import find_record_writer, render_transaction
from tonlake.queries.errors import QueryNeeded
from tonlake.queries.reader import Row

StateKey = tuple[int, bytes, bytes]
"""Workchain, account id and state hash."""

MAX_AT_ONCE = 200
"""Writing more transactions takes milliseconds, which would block the event loop."""


def answer_transactions(call: Call, keys: Sequence[Row]) -> Transactions:
    """Return the transactions of the keys, in their order, and their address book."""
    rows, messages, states = split_records(read_records(call, keys))
    form = call.settings.http.opcode_format
    return Transactions(
        transactions=[render_transaction(row, messages[row["hash"]], states, form) for row in rows],
        address_book=_read_book(call, ((row, messages[row["hash"]]) for row in rows)),
    )


def write_transactions(call: Call, keys: Sequence[Row]) -> Transactions:
    """Return the same as ``answer_transactions``, for sending only.

    With the C extension it consists of ``msgspec.Raw``: JSON written without structs.
    """
    write = find_record_writer(call.settings.http.opcode_format)
    if write is None:
        return answer_transactions(call, keys)
    texts, named = write(read_records(call, keys))
    written: list[Any] = list(map(Raw, texts))
    return Transactions(transactions=written, address_book=write_address_book(call, named))


def read_transactions(call: Call, keys: Sequence[Row]) -> tuple[list[Row], dict[bytes, list[Row]]]:
    """Return the rows of the keys in their order, and their messages by transaction hash."""
    rows, messages, _ = split_records(read_records(call, keys))
    return rows, messages


def read_records(call: Call, keys: Sequence[Row]) -> Iterable[Any]:
    """Return the transactions of keys, in order. Raises QueryNeeded if too many at once."""
    if len(keys) > MAX_AT_ONCE and not call.reader.may_query:
        raise QueryNeeded("v3/transactions")
    return call.reader.rows("v3/transactions", keys=keys)


def split_records(
    records: Iterable[Any],
) -> tuple[list[Row], dict[bytes, list[Row]], dict[StateKey, Row]]:
    """Return rows, messages by transaction hash, and states by workchain, account and hash."""
    rows, messages, states = [], {}, {}
    for record in records:
        row = record.row
        rows.append(row)
        messages[row["hash"]] = record.messages
        account = row["workchain"], row["account"]
        if record.before is not None:
            states[*account, row["account_state_hash_before"]] = record.before
        if record.after is not None:
            states[*account, row["account_state_hash_after"]] = record.after
    return rows, messages, states


def list_addresses(transactions: Sequence[Transaction]) -> set[Address]:
    """Return the addresses in the address book of these transactions."""
    texts = {transaction.account for transaction in transactions}
    for transaction in transactions:
        if transaction.in_msg is not None:
            texts.add(transaction.in_msg.source or "")
        texts.update(message.destination or "" for message in transaction.out_msgs)
    return {parse_address(text) for text in texts if text}


def _read_book(call: Call, transactions: Iterable[tuple[Row, Sequence[Row]]]) -> AddressBook:
    """Return the address book of accounts, sources of in messages, destinations of out messages."""
    if call.no_address_book:
        return {}
    named: set[tuple[int, bytes]] = set()
    for row, messages in transactions:
        named.add((row["workchain"], row["account"]))
        for message in messages:
            end, workchain = _NAMED[message["direction"]]
            if message[end] is not None:
                named.add((message[workchain], message[end]))
    return read_address_book(call, itertools.starmap(Address, named))


_NAMED = {"in": ("source", "source_workchain"), "out": ("destination", "destination_workchain")}
"""By direction: the end of a message that is not the transaction's account."""


_SPAN = ("start_utime", "end_utime", "start_lt", "end_lt")


class TransactionsQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of transactions, combined by AND."""

    workchain: Int32 = None
    shard: Shard = None
    seqno: Int32 = None
    mc_seqno: Int32 = None
    account: Addresses = ()
    exclude_account: Addresses = ()
    hash: Hashes = ()
    lt: Lt = None
    aborted: Flag = None


def find_keys(call: Call, query: TransactionsQuery) -> list[Row]:
    """Return ``hash`` and ``lt`` of a page, in order. Raises NotCovered if a block is missing."""
    check_mc_seqno(call.reader, query.mc_seqno)
    if query.seqno is not None and call.reader.snapshot.state.last_pruned:
        # A few transactions of pruned blocks are kept.
        check_seqno(call.reader, query.workchain, query.shard, query.seqno)
    return _find_keys_by_hash(call, query) if query.hash else _find_keys(call, query)


def _find_keys_by_hash(call: Call, query: TransactionsQuery) -> list[Row]:
    """Return a page of transactions by hash; at most one for each hash, so it is cut here."""
    if _asks_only(query, "hash"):
        found = call.reader.rows("v3/transaction_keys_by_hash", hashes=query.hash)
    else:
        everything = msgspec.structs.replace(query, limit=len(query.hash), offset=0)
        found = _query_keys(call, everything)
    if query.mc_seqno is None:
        found.sort(key=lambda key: bytes(key["hash"]), reverse=query.descending)
    first = query.offset or 0
    return found[first : first + (query.limit or len(found))]


def _find_keys(call: Call, query: TransactionsQuery) -> list[Row]:
    if len(query.account) == 1 and _asks_only(query, "account", *_SPAN):
        account = query.account[0]
        return call.reader.rows(
            "v3/transaction_keys_of_account",
            workchain=account.workchain,
            account=account.account,
            **query.filters(),
        )
    if query.workchain is not None and query.shard is not None and query.seqno is not None:
        block = query.workchain, query.shard, query.seqno
        if _asks_only(query, "workchain", "shard", "seqno", "mc_seqno"):
            return _find_block_keys(call, query, *block)
    return _query_keys(call, query)


def _find_block_keys(
    call: Call, query: TransactionsQuery, workchain: int, shard: int, seqno: int
) -> list[Row]:
    block = find_block_row(call.reader, workchain, [shard], seqno)
    if block is None or query.mc_seqno not in (None, block["mc_seqno"]):
        return []
    return list_block_keys(
        call.reader,
        [block],
        query.limit or 0,
        offset=query.offset or 0,
        descending=query.descending,
    )


def _query_keys(call: Call, query: TransactionsQuery) -> list[dict[str, Any]]:
    excluded = pair_addresses(query.exclude_account)
    filters = {
        "workchain": query.workchain,
        "shard": query.shard,
        "block_seqno": query.seqno,
        "mc_seqno": query.mc_seqno,
        "lt": query.lt,
        "aborted": query.aborted,
        "hashes": list(query.hash),
        "excluded_workchains": excluded["workchains"],
        "excluded_accounts": excluded["accounts"],
        "by_time": query.by_time and query.mc_seqno is None,
        **query.filters(),
    }
    if query.account:
        requested = pair_addresses(query.account)
        return call.reader.rows("v3/transaction_keys_of_accounts", **filters, **requested)
    return call.reader.rows("v3/transaction_keys", **filters)


def _asks_only(query: TransactionsQuery, *filters: str) -> bool:
    """Return whether the request has only these filters."""
    blank = {name: getattr(_NO_FILTERS, name) for name in (*filters, "limit", "offset", "sort")}
    return msgspec.structs.replace(query, **blank) == _NO_FILTERS


_NO_FILTERS = TransactionsQuery()


def check_covered(call: Call, query: TransactionsQuery) -> None:
    """Raise NotCovered for an empty result that missing blocks may have caused."""
    if query.seqno is not None:
        check_seqno(call.reader, query.workchain, query.shard, query.seqno)
    utime, lt = query.spans
    check_spans(call.reader, utime, lt, (query.lt, query.lt))
    if query.mc_seqno is None and query.seqno is None and not query.offset:
        exact = lt if query.lt is None else (query.lt, query.lt)
        check_no_gap(call.reader, utime=utime, lt=exact)
