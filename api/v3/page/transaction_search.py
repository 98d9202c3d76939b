"""Chooses the named query for the filters of a transaction search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.header import find_block, list_block_keys
from tonlake.api.request.params import Addresses, Flag, Hashes, Int32, Lt, Shard
from tonlake.api.v3.page.book import pair_addresses
from tonlake.api.v3.page.coverage import (
    check_lt,
    check_mc_seqno,
    check_no_gap,
    check_seqno,
    check_utime,
)
from tonlake.api.v3.page.operation import SpanPage

if TYPE_CHECKING:
    from tonlake.api.request.call import Call

Row = dict[str, Any]

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
    """Return ``hash`` and ``lt`` of the requested page, in its order.

    Raises:
        NotCovered: the lake does not cover the requested block.
    """
    if query.mc_seqno is not None:
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
    block = find_block(call.reader, workchain, [shard], seqno)
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
    """Refuse an empty result that missing blocks may have caused.

    Raises:
        NotCovered: the lake does not cover the requested range at all.
    """
    if query.seqno is not None:
        check_seqno(call.reader, query.workchain, query.shard, query.seqno)
    utime, lt = (query.start_utime, query.end_utime), (query.start_lt, query.end_lt)
    check_utime(call.reader, *utime)
    check_lt(call.reader, *lt)
    check_lt(call.reader, query.lt, query.lt)
    if query.mc_seqno is None and query.seqno is None and not query.offset:
        exact = lt if query.lt is None else (query.lt, query.lt)
        check_no_gap(call.reader, utime=utime, lt=exact)
