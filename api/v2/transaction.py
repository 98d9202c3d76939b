"""Transactions: the history of an account, and those that sent or received a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from api.errors import AnswerNotFound, LiteServerError
from api.v2.message import render_message, render_message_std
from api.v2.place import LT_UNKNOWN, begins_at_zero_state, name_ranges
from api.v2.value import ZERO_HASH, render_account, render_boc, render_transaction_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.address import Address
    from api.call import Call
    from api.v2.arguments import HistoryParams, LocateParams

    RenderMessage = Callable[[Mapping[str, Any]], dict[str, Any]]

Row = Mapping[str, Any]
NOT_LOCATED = "LITE_SERVER_UNKNOWN: cannot locate transaction in block with specified logical time"
HASH_MISMATCH = "LITE_SERVER_UNKNOWN: transaction hash mismatch"


class Page(msgspec.Struct, frozen=True):
    """Transactions, newest first, and the one that would come next; lt 0 is the end."""

    rows: Sequence[Row]
    next_lt: int
    next_hash: bytes


def answer_transactions(call: Call, params: HistoryParams) -> list[dict[str, Any]]:
    """getTransactions: newest first; each page begins with the transaction it is asked for."""
    return render_extended(call, _read_page(call, params).rows)


def answer_transactions_std(call: Call, params: HistoryParams) -> dict[str, Any]:
    """getTransactionsStd: the same with the id of the transaction after the page."""
    page = _read_page(call, params)
    messages = _read_messages(call, page.rows)
    return {
        "@type": "raw.transactions",
        "transactions": [
            {
                "@type": "raw.transaction",
                **render_transaction(row, messages[row["hash"]], render_message_std),
            }
            for row in page.rows
        ],
        "previous_transaction_id": render_transaction_id(page.next_lt, page.next_hash),
    }


def _read_page(call: Call, params: HistoryParams) -> Page:
    """Return a page without holes, and nothing at all only where there is nothing.

    Raises:
        LiteServerError: no such transaction, or the lake does not have what comes next.
    """
    lt = params.start_lt
    if lt == 0:
        return Page((), 0, ZERO_HASH)
    address = params.address.address
    limit = params.limit or min(call.settings.v2_default_limit, call.settings.v2_max_limit)
    if lt is not None:
        _check_start(call, address, params, lt)
    rows = call.reader.rows(
        "v2/transactions_back",
        workchain=address.workchain,
        account=address.account,
        **({} if lt is None else {"lt": lt}),
        rows=limit + 1,
    )
    if not rows and not begins_at_zero_state(call, call.reader.snapshot.last_mc_seqno):
        raise LiteServerError(f"{LT_UNKNOWN}: {name_ranges(call)}, and nothing of {address}")
    if lt is None and rows and rows[0]["mc_seqno"] < call.reader.snapshot.ranges[-1][0]:
        raise LiteServerError(f"{LT_UNKNOWN}: {name_ranges(call)}, and no newest of {address}")
    page = cut_page(rows, limit)
    wanted = [row for row in page.rows if row["lt"] > params.to_lt]
    if len(wanted) < len(page.rows):
        after = page.rows[len(wanted)]
        return Page(wanted, after["lt"], after["hash"])
    if len(wanted) < limit and page.next_lt > params.to_lt:
        note = f"{name_ranges(call)}, and older transactions of {address} are outside"
        if lt is not None and len(wanted) == 1:
            raise LiteServerError(f"{LT_UNKNOWN}: {note}")
        call.warn(note)
    return page


def cut_page(rows: Sequence[Row], limit: int) -> Page:
    """Return at most ``limit`` rows, up to the first that does not follow from the one before.

    An account that was destroyed and came back names no transaction before its new first one;
    its history goes on with the last one of its former life.
    """
    taken: list[Row] = []
    next_lt, next_hash = 0, ZERO_HASH
    for row in rows:
        if taken and next_lt not in (0, row["lt"]):
            break
        next_lt, next_hash = row["lt"], row["hash"]
        if len(taken) == limit:
            break
        taken.append(row)
        next_lt, next_hash = row["prev_trans_lt"], row["prev_trans_hash"]
    return Page(taken, next_lt, next_hash)


def _check_start(call: Call, address: Address, params: HistoryParams, lt: int) -> None:
    """Refuse an lt at which the account has no transaction, or one of another hash."""
    start = call.reader.one(
        "v2/transaction", workchain=address.workchain, account=address.account, lt=lt
    )
    if start is None:
        raise LiteServerError(NOT_LOCATED)
    if start["hash"] != params.hash:
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
    return render_extended(call, [row])[0]


def render_extended(call: Call, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return ``ext.transaction`` objects."""
    messages = _read_messages(call, rows)
    return [
        {
            "@type": "ext.transaction",
            **render_transaction(row, messages[row["hash"]], render_message),
            "account": f"{row['workchain']}:{row['account'].hex().upper()}",
        }
        for row in rows
    ]


def render_in_block(call: Call, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return ``raw.transactionExt`` objects."""
    messages = _read_messages(call, rows)
    return [
        {
            "@type": "raw.transactionExt",
            **render_transaction(row, messages[row["hash"]], render_message_std),
            "account": f"{row['workchain']}:{row['account'].hex().upper()}",
        }
        for row in rows
    ]


def _read_messages(call: Call, rows: Sequence[Row]) -> dict[bytes, list[Row]]:
    """Return the messages of each transaction, the incoming one first."""
    lookups = call.reader.lookups
    if lookups is not None:
        hits = (lookups.find_transaction(row["hash"]) for row in rows)
        records = lookups.read_records([hit for hit in hits if hit is not None])
        return {record.row["hash"]: record.messages for record in records}
    found: dict[bytes, list[Row]] = {row["hash"]: [] for row in rows}
    if rows:
        lts = [row["lt"] for row in rows]
        for message in call.reader.rows(
            "v2/messages", tx_hashes=list(found), first_lt=min(lts), last_lt=max(lts)
        ):
            found[message["tx_hash"]].append(message)
    return found


def render_transaction(row: Row, messages: Sequence[Row], render: RenderMessage) -> dict[str, Any]:
    """Return what all kinds of transactions share; in_msg is left out where there is none."""
    sent = [message for message in messages if message["direction"] == "out"]
    received = [render(message) for message in messages if message["direction"] == "in"]
    fee = row["total_fees"] + sum(message["fwd_fee"] or 0 for message in sent)
    storage_fee = row["storage_fees_collected"] or 0
    return {
        "address": render_account(row["workchain"], row["account"]),
        "utime": row["now"],
        "data": render_boc(row["boc"]),
        "transaction_id": render_transaction_id(row["lt"], row["hash"]),
        "fee": str(fee),
        "storage_fee": str(storage_fee),
        "other_fee": str(fee - storage_fee),
        **({"in_msg": received[0]} if received else {}),
        "out_msgs": [render(message) for message in sent],
    }
