"""Operations about transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.errors import AnswerNotFound, RequestInvalid
from api.params import (
    Addresses,
    Hash,
    Hashes,
    Int32,
    Lt,
    OneAddress,
    Opcode,
    Query,
    Shard,
    Text,
    Utime,
)
from api.v3.book import pair_addresses
from api.v3.coverage import check_lt, check_mc_seqno, check_seqno, check_utime
from api.v3.operation import SortedPage, operation
from api.v3.transaction_page import answer_transactions

if TYPE_CHECKING:
    from api.call import Call
    from api.v3.model import Transactions

Keys = list[dict[str, Any]]


class TransactionsQuery(SortedPage, frozen=True, kw_only=True):
    """Filters of transactions; all that are given must hold."""

    workchain: Int32 = None
    shard: Shard = None
    seqno: Int32 = None
    mc_seqno: Int32 = None
    account: Addresses = ()
    exclude_account: Addresses = ()
    hash: Hashes = ()
    lt: Lt = None
    start_utime: Utime = None
    end_utime: Utime = None
    start_lt: Lt = None
    end_lt: Lt = None

    @property
    def about_one_account(self) -> bool:
        """Whether it asks for a stretch of one account's history and nothing else."""
        others = (self.workchain, self.shard, self.seqno, self.mc_seqno, self.lt)
        return (
            len(self.account) == 1
            and others == (None,) * 5
            and not (self.exclude_account or self.hash)
        )


class BlockTransactionsQuery(SortedPage, frozen=True, kw_only=True):
    """A masterchain block."""

    seqno: Int32 = None


class MessageTransactionsQuery(SortedPage, frozen=True, kw_only=True):
    """Filters of messages, of which one of the first three is needed."""

    msg_hash: Hashes = ()
    body_hash: Hash = None
    opcode: Opcode = None
    direction: Text = None
    source: OneAddress = None
    destination: OneAddress = None


class AdjacentQuery(Query, frozen=True, kw_only=True):
    """A transaction and a direction from it."""

    hash: Hash = None
    direction: Text = None


def get_transactions(call: Call, query: TransactionsQuery) -> Transactions:
    """List transactions by any filters.

    Raises:
        NotCovered: nothing found, and the lake does not cover what was asked for.
    """
    keys = _find_account_keys(call, query) if query.about_one_account else _find_keys(call, query)
    if not keys:
        _check_covered(call, query)
    return answer_transactions(call, keys)


def get_block_transactions(call: Call, query: BlockTransactionsQuery) -> Transactions:
    """List the transactions that a masterchain block commits."""
    wanted = TransactionsQuery(
        mc_seqno=query.seqno or 0, limit=query.limit, offset=query.offset, sort=query.sort
    )
    return get_transactions(call, wanted)


def get_message_transactions(call: Call, query: MessageTransactionsQuery) -> Transactions:
    """List the transactions that consumed or produced messages, each of them once.

    Raises:
        RequestInvalid: none of the three filters, or an unknown direction.
    """
    if not query.msg_hash and query.body_hash is None and query.opcode is None:
        raise RequestInvalid("at least one of msg_hash, body_hash, opcode should be specified")
    direction = check_direction(query.direction)
    if direction is None and query.opcode is not None and not query.msg_hash:
        direction = None if query.body_hash else "in"
    keys = call.reader.rows(
        "v3/transaction_keys_by_message",
        msg_hashes=list(query.msg_hash),
        body_hash=query.body_hash,
        opcode=query.opcode,
        direction=direction,
        source_workchain=query.source and query.source.workchain,
        source=query.source and query.source.account,
        destination_workchain=query.destination and query.destination.workchain,
        destination=query.destination and query.destination.account,
        descending=query.descending,
        limit=query.limit,
        offset=query.offset,
    )
    return answer_transactions(call, keys)


def get_adjacent_transactions(call: Call, query: AdjacentQuery) -> Transactions:
    """List the transaction before one, those after it, or both.

    Raises:
        RequestInvalid: no hash.
        AnswerNotFound: there are none in the lake.
    """
    if query.hash is None:
        raise RequestInvalid("hash is required")
    direction = query.direction if query.direction in ("in", "out") else None
    keys = call.reader.rows("v3/transaction_keys_adjacent", hash=query.hash, direction=direction)
    if not keys:
        raise AnswerNotFound("adjacent transactions not found")
    return answer_transactions(call, keys)


def check_direction(direction: str | None) -> str | None:
    """Return ``in``, ``out`` or None.

    Raises:
        RequestInvalid: anything else.
    """
    if direction not in (None, "in", "out"):
        raise RequestInvalid("direction should be one of: in, out")
    return direction


def _find_account_keys(call: Call, query: TransactionsQuery) -> Keys:
    return call.reader.rows(
        "v3/transaction_keys_of_account",
        workchain=query.account[0].workchain,
        account=query.account[0].account,
        **_span_of(query),
    )


def _find_keys(call: Call, query: TransactionsQuery) -> Keys:
    accounts = pair_addresses(query.account)
    excluded = pair_addresses(query.exclude_account)
    by_hash = bool(query.hash) and query.mc_seqno is None
    timed = (query.start_utime, query.end_utime) != (None, None)
    return call.reader.rows(
        "v3/transaction_keys",
        workchain=query.workchain,
        shard=query.shard,
        block_seqno=query.seqno,
        mc_seqno=query.mc_seqno,
        workchains=accounts["workchains"],
        accounts=accounts["accounts"],
        excluded_workchains=excluded["workchains"],
        excluded_accounts=excluded["accounts"],
        hashes=list(query.hash),
        lt=query.lt,
        by_hash=by_hash,
        by_time=timed and not by_hash and query.mc_seqno is None,
        **_span_of(query),
    )


def _span_of(query: TransactionsQuery) -> dict[str, Any]:
    return {
        "start_utime": query.start_utime,
        "end_utime": query.end_utime,
        "start_lt": query.start_lt,
        "end_lt": query.end_lt,
        "descending": query.descending,
        "limit": query.limit,
        "offset": query.offset,
    }


def _check_covered(call: Call, query: TransactionsQuery) -> None:
    """Tell "there is none" from "the lake does not know"."""
    if query.mc_seqno is not None:
        check_mc_seqno(call.reader, query.mc_seqno)
    if query.seqno is not None:
        check_seqno(call.reader, query.workchain, query.shard, query.seqno)
    check_utime(call.reader, query.start_utime, query.end_utime)
    check_lt(call.reader, query.start_lt, query.end_lt)
    check_lt(call.reader, query.lt, query.lt)


routes = [
    operation("/transactions", TransactionsQuery, get_transactions),
    operation("/transactionsByMasterchainBlock", BlockTransactionsQuery, get_block_transactions),
    operation("/transactionsByMessage", MessageTransactionsQuery, get_message_transactions),
    operation("/adjacentTransactions", AdjacentQuery, get_adjacent_transactions),
]
