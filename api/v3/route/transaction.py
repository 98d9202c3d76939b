"""Operations about transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.errors import AnswerNotFound, RequestInvalid
from tonlake.api.request.params import Hash, Hashes, Int32, OneAddress, Opcode, Query, Text
from tonlake.api.v3.page.coverage import check_no_gap
from tonlake.api.v3.page.operation import SortedPage, operation
from tonlake.api.v3.page.transaction_page import (
    TransactionsQuery,
    check_covered,
    find_keys,
    write_transactions,
)

if TYPE_CHECKING:
    from tonlake.api.request.call import Call
    from tonlake.api.v3.resource.answer import Transactions


class BlockTransactionsQuery(SortedPage, frozen=True, kw_only=True):
    """A masterchain block."""

    seqno: Int32 = None


class MessageTransactionsQuery(SortedPage, frozen=True, kw_only=True):
    """Filters of messages; one of the first three is required."""

    msg_hash: Hashes = ()
    body_hash: Hash = None
    opcode: Opcode = None
    direction: Text = None
    source: OneAddress = None
    destination: OneAddress = None


class AdjacentQuery(Query, frozen=True, kw_only=True):
    """A transaction, and the direction of its messages."""

    hash: Hash = None
    direction: Text = None


def get_transactions(call: Call, query: TransactionsQuery) -> Transactions:
    """List transactions.

    Raises:
        NotCovered: the result is empty, and the lake does not cover the requested range.
    """
    keys = find_keys(call, query)
    if not keys:
        check_covered(call, query)
    return write_transactions(call, keys)


def get_block_transactions(call: Call, query: BlockTransactionsQuery) -> Transactions:
    """List the transactions that a masterchain block commits."""
    requested = TransactionsQuery(
        mc_seqno=query.seqno or 0, limit=query.limit, offset=query.offset, sort=query.sort
    )
    return get_transactions(call, requested)


def get_message_transactions(call: Call, query: MessageTransactionsQuery) -> Transactions:
    """List transactions that consumed or produced a message.

    Raises:
        RequestInvalid: none of the three filters, or an unknown direction.
        NotCovered: the result is empty, and the lake has gaps.
    """
    if not query.msg_hash and query.body_hash is None and query.opcode is None:
        raise RequestInvalid("at least one of msg_hash, body_hash, opcode should be specified")
    direction = check_direction(query.direction)
    if query.opcode is not None and not query.msg_hash and query.body_hash is None:
        direction = direction or "in"
    keys = _find_by_message(call, query, direction)
    if not keys and not query.offset:
        check_no_gap(call.reader)
    return write_transactions(call, keys)


def _find_by_message(
    call: Call, query: MessageTransactionsQuery, direction: str | None
) -> list[dict[str, Any]]:
    return call.reader.rows(
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
        limit=query.limit or 0,
        offset=query.offset or 0,
    )


def get_adjacent_transactions(call: Call, query: AdjacentQuery) -> Transactions:
    """List the transactions that sent to or received from a transaction.

    Raises:
        RequestInvalid: no hash.
        AnswerNotFound: the lake has none.
    """
    if query.hash is None:
        raise RequestInvalid("hash is required")
    direction = query.direction if query.direction in ("in", "out") else None
    keys = call.reader.rows("v3/transaction_keys_adjacent", hash=query.hash, direction=direction)
    if not keys:
        raise AnswerNotFound("adjacent transactions not found")
    return write_transactions(call, keys)


def check_direction(direction: str | None) -> str | None:
    """Return ``in``, ``out`` or None.

    Raises:
        RequestInvalid: anything else.
    """
    if direction not in (None, "in", "out"):
        raise RequestInvalid("direction should be one of: in, out")
    return direction


routes = [
    operation("/transactions", TransactionsQuery, get_transactions),
    operation(
        "/transactionsByMasterchainBlock",
        BlockTransactionsQuery,
        get_block_transactions,
    ),
    operation("/transactionsByMessage", MessageTransactionsQuery, get_message_transactions),
    operation("/adjacentTransactions", AdjacentQuery, get_adjacent_transactions),
]
