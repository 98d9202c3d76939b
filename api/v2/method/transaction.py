"""Transactions: histories of accounts, searches by message, and their bags of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.api.chain.account import ZERO_HASH
from tonlake.api.chain.place import LT_UNKNOWN, begins_at_zero_state, name_ranges
from tonlake.api.errors import AnswerNotFound, LiteServerError, NotDerived
from tonlake.api.v2.message import render_message, render_message_std
from tonlake.api.v2.value import render_account, render_boc, render_transaction_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tonlake.api.request.call import Call
    from tonlake.api.v2.arguments import HistoryParams, LocateParams
    from tonlake.lake.index.segment.declared import Record
    from tonlake.queries.reader import Reader

    RenderMessage = Callable[[Mapping[str, Any]], dict[str, Any]]

DEFAULT_LIMIT = 10
"""Default limit of a list."""

Row = Mapping[str, Any]
NOT_LOCATED = "LITE_SERVER_UNKNOWN: cannot locate transaction in block with specified logical time"
HASH_MISMATCH = "LITE_SERVER_UNKNOWN: transaction hash mismatch"


class Page(NamedTuple):
    """Transactions, newest first, and the id of the next one; lt 0 at the end."""

    records: Sequence[Record]
    next_lt: int
    next_hash: bytes


def answer_transactions(call: Call, params: HistoryParams) -> list[dict[str, Any]]:
    """getTransactions: newest first, starting at ``lt`` and ``hash``."""
    return _render_extended(call, _read_page(call, params).records)


def answer_transactions_std(call: Call, params: HistoryParams) -> dict[str, Any]:
    """getTransactionsStd: as getTransactions, with the id of the next transaction."""
    page = _read_page(call, params)
    return {
        "@type": "raw.transactions",
        "transactions": [
            {"@type": "raw.transaction", **fields}
            for fields in _render_all(call, page.records, render_message_std)
        ],
        "previous_transaction_id": render_transaction_id(page.next_lt, page.next_hash),
    }


def _read_page(call: Call, params: HistoryParams) -> Page:
    """Return a page without gaps; it is empty only if there are no transactions.

    Raises:
        LiteServerError: no such transaction, or the lake lacks the next one.
    """
    lt = params.start_lt
    if lt == 0:
        return Page((), 0, ZERO_HASH)
    address = params.address.address
    limit = params.limit or min(DEFAULT_LIMIT, call.settings.http.max_limit)
    keys = call.reader.rows(
        "v3/transaction_keys_of_account",
        workchain=address.workchain,
        account=address.account,
        end_lt=lt,
        limit=limit + 1,
    )
    records = _read_records(call, keys)
    if lt is not None:
        _check_start(records, params, lt)
    if not records and not begins_at_zero_state(call, call.reader.snapshot.last_mc_seqno):
        raise LiteServerError(f"{LT_UNKNOWN}: {name_ranges(call)}, and nothing of {address}")
    if lt is None and records and records[0].row["mc_seqno"] < call.reader.snapshot.ranges[-1][0]:
        raise LiteServerError(f"{LT_UNKNOWN}: {name_ranges(call)}, and no newest of {address}")
    page = cut_page(records, limit)
    requested = [record for record in page.records if record.row["lt"] > params.to_lt]
    if len(requested) < len(page.records):
        after = page.records[len(requested)].row
        return Page(requested, after["lt"], after["hash"])
    if len(requested) < limit and page.next_lt > params.to_lt:
        note = f"{name_ranges(call)}, and older transactions of {address} are outside"
        if lt is not None and len(requested) == 1:
            raise LiteServerError(f"{LT_UNKNOWN}: {note}")
        call.warn(note)
    return page


def cut_page(records: Sequence[Record], limit: int) -> Page:
    """Return at most ``limit`` records, up to the first gap in the chain of previous transactions.

    The first transaction of an account that was deleted and created again has no previous one; its
    history continues with the last transaction before the deletion.
    """
    taken: list[Record] = []
    next_lt, next_hash = 0, ZERO_HASH
    for record in records:
        row = record.row
        if taken and next_lt not in (0, row["lt"]):
            break
        next_lt, next_hash = row["lt"], row["hash"]
        if len(taken) == limit:
            break
        taken.append(record)
        next_lt, next_hash = row["prev_trans_lt"], row["prev_trans_hash"]
    return Page(taken, next_lt, next_hash)


def _check_start(records: Sequence[Record], params: HistoryParams, lt: int) -> None:
    """Refuse an lt at which the account has no transaction, or one with another hash."""
    if not records or records[0].row["lt"] != lt:
        raise LiteServerError(NOT_LOCATED)
    if records[0].row["hash"] != params.hash:
        raise LiteServerError(HASH_MISMATCH)


def answer_receiver(call: Call, params: LocateParams) -> dict[str, Any]:
    """tryLocateTx, tryLocateResultTx: the transaction that received a message."""
    return _locate(call, params, "in")


def answer_sender(call: Call, params: LocateParams) -> dict[str, Any]:
    """tryLocateSourceTx: the transaction that sent a message."""
    return _locate(call, params, "out")


def _locate(call: Call, params: LocateParams, direction: str) -> dict[str, Any]:
    source, destination = params.source.address, params.destination.address
    row = call.reader.one(
        "v2/transaction_of_message",
        direction=direction,
        source_workchain=source.workchain,
        source=source.account,
        destination_workchain=destination.workchain,
        destination=destination.account,
        created_lt=params.created_lt,
    )
    if row is None:
        raise AnswerNotFound("transaction was not found")
    return _render_extended(call, _read_records(call, [row]))[0]


def _render_extended(call: Call, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return ``ext.transaction`` objects."""
    return [
        {"@type": "ext.transaction", **fields, "account": _name_account(record.row)}
        for record, fields in zip(records, _render_all(call, records, render_message), strict=True)
    ]


def _read_records(call: Call, keys: Sequence[Row]) -> Sequence[Any]:
    return call.reader.rows("v3/transactions", keys=keys)


def render_in_block(call: Call, keys: Sequence[Row]) -> list[dict[str, Any]]:
    """Return ``raw.transactionExt`` objects."""
    records = _read_records(call, keys)
    return [
        {"@type": "raw.transactionExt", **fields, "account": _name_account(record.row)}
        for record, fields in zip(
            records, _render_all(call, records, render_message_std), strict=True
        )
    ]


def _name_account(row: Row) -> str:
    return f"{row['workchain']}:{row['account'].hex().upper()}"


def _render_all(
    call: Call, records: Sequence[Record], render: RenderMessage
) -> Iterator[dict[str, Any]]:
    """Yield the fields that all kinds of transactions share."""
    bags = read_bags(call.reader, records)
    for record in records:
        yield render_transaction(record.row, record.messages, bags[record.row["hash"]], render)


def render_transaction(
    row: Row, messages: Sequence[Row], bag: bytes, render: RenderMessage
) -> dict[str, Any]:
    """Return the fields that all kinds of transactions share; without in_msg if there is none."""
    sent = [message for message in messages if message["direction"] == "out"]
    received = [render(message) for message in messages if message["direction"] == "in"]
    fee = row["total_fees"] + sum(message["fwd_fee"] or 0 for message in sent)
    storage_fee = row["storage_fees_collected"] or 0
    return {
        "address": render_account(row["workchain"], row["account"]),
        "utime": row["now"],
        "data": render_boc(bag),
        "transaction_id": render_transaction_id(row["lt"], row["hash"]),
        "fee": str(fee),
        "storage_fee": str(storage_fee),
        "other_fee": str(fee - storage_fee),
        **({"in_msg": received[0]} if received else {}),
        "out_msgs": [render(message) for message in sent],
    }


def read_bags(reader: Reader, records: Sequence[Record]) -> dict[bytes, bytes]:
    """Return the bags of transactions by hash.

    Raises:
        NotDerived: a row has no bag: an earlier version of tonlake wrote it, or it is reported.
    """
    if not records:
        return {}
    lts = [record.row["lt"] for record in records]
    found = reader.rows(
        "v2/transaction_bags",
        hashes=[record.row["hash"] for record in records],
        first_lt=min(lts),
        last_lt=max(lts),
    )
    for row in found:
        if row["boc"] is None:
            raise NotDerived(
                f"this lake has transaction {row['hash'].hex()} without its bag of cells: an "
                "earlier version wrote it, or it is from the public data set; ingest its block "
                "from a node into a new lake"
            )
    return {row["hash"]: row["boc"] for row in found}
