"""Pages of transactions with their messages, account states and addresses."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from tonlake.api.text.address import Address, parse_address
from tonlake.api.v3.page.book import read_address_book, write_address_book
from tonlake.api.v3.resource.answer import AddressBook, Transactions
from tonlake.api.v3.resource.transaction import find_record_writer, render_transaction
from tonlake.queries.errors import QueryNeeded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.api.request.call import Call
    from tonlake.api.v3.layout.transaction import Transaction

Row = dict[str, Any]
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


def read_records(call: Call, keys: Sequence[Row]) -> list[Any]:
    """Return the transactions of keys in their order, each as ``queries.composed.Record``.

    Raises:
        QueryNeeded: they are too many for the event loop.
    """
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


_NAMED = {
    "in": ("source", "source_workchain"),
    "out": ("destination", "destination_workchain"),
}
"""By direction: the end of a message that is not the transaction's account."""
