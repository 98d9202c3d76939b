"""Pages of transactions: their search, messages, account states and addresses."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from tonlake.api.chain.block import find_block_row, list_block_keys
from tonlake.api.request.call import Addresses, Call, Flag, Hashes, Int32, Lt, Shard
from tonlake.api.text.encoding import Address, parse_address
from tonlake.api.v3.layout.transaction import Transaction
from tonlake.api.v3.page.book import pair_addresses, write_address_book
from tonlake.api.v3.page.operation import (
    SpanPage,
    check_mc_seqno,
    check_no_gap,
    check_seqno,
    check_spans,
)
from tonlake.api.v3.resource.answer import Transactions, read_sent
from tonlake.api.v3.resource.transaction import write_records
from tonlake.queries.errors import QueryNeeded
from tonlake.queries.reader import Row

MAX_AT_ONCE = 200
"""Writing more transactions takes milliseconds, which would block the event loop."""


def answer_transactions(call: Call, keys: Sequence[Row]) -> Transactions:
    """Return the transactions of the keys, in their order, and their address book."""
    return read_sent(write_transactions(call, keys))


def write_transactions(call: Call, keys: Sequence[Row]) -> Transactions:
    """Return the same as ``answer_transactions``, for sending only: as ``msgspec.Raw``."""
    texts, named = write_records(read_records(call, keys), call.settings.http.opcode_format)
    written: list[Any] = list(map(Raw, texts))
    return Transactions(transactions=written, address_book=write_address_book(call, named))


def read_records(call: Call, keys: Sequence[Row]) -> Iterable[Any]:
    """Return the transactions of keys, in order. Raises QueryNeeded if too many at once."""
    if len(keys) > MAX_AT_ONCE and not call.reader.may_query:
        raise QueryNeeded("v3/transactions")
    return call.reader.rows("v3/transactions", keys=keys)


def list_addresses(transactions: Sequence[Transaction]) -> set[Address]:
    """Return the addresses in the address book of these transactions."""
    texts = {transaction.account for transaction in transactions}
    for transaction in transactions:
        if transaction.in_msg is not None:
            texts.add(transaction.in_msg.source or "")
        texts.update(message.destination or "" for message in transaction.out_msgs)
    return {parse_address(text) for text in texts if text}


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
    if query.mc_seqno is None and len(found) > 1:
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
