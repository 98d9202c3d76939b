"""A page of transactions with all that belongs to them: messages, account states, addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw

from api.address import Address, parse_address
from api.v3.answer import Transactions
from api.v3.book import read_address_book
from api.v3.transaction import render_transaction
from api.v3.transaction_layout import find_writer
from queries import exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from api.call import Call
    from api.v3.model import Transaction

Row = dict[str, Any]
Key = dict[str, Any]
"""``hash`` and ``lt`` of a transaction: enough to find it without reading the whole table."""


def answer_transactions(call: Call, keys: Sequence[Key]) -> Transactions:
    """Return the transactions of the keys, in their order, and their address book."""
    rows, messages, states = exact.read_transactions(call.reader, keys)
    form = call.settings.opcode_format
    return Transactions(
        transactions=[render_transaction(row, messages[row["hash"]], states, form) for row in rows],
        address_book=read_address_book(call, _name_addresses(rows, messages)),
    )


def write_transactions(call: Call, keys: Sequence[Key]) -> Transactions:
    """Return the same as ``answer_transactions``, to be sent and not to be looked into.

    With the extension its transactions are ``msgspec.Raw``: written already, without any struct.
    """
    write = find_writer(call.settings.opcode_format)
    if write is None:
        return answer_transactions(call, keys)
    rows, messages, states = exact.read_transactions(call.reader, keys)
    written: list[Any] = [Raw(write(row, messages[row["hash"]], states)) for row in rows]
    return Transactions(
        transactions=written,
        address_book=read_address_book(call, _name_addresses(rows, messages)),
    )


def read_transactions(call: Call, keys: Sequence[Key]) -> tuple[list[Row], dict[bytes, list[Row]]]:
    """Return the rows of the keys in their order, and their messages by transaction hash."""
    found = exact.read_transactions(call.reader, keys)
    return found.rows, found.messages


def list_addresses(transactions: Sequence[Transaction]) -> set[Address]:
    """Return the addresses of the book of these transactions."""
    texts = {transaction.account for transaction in transactions}
    for transaction in transactions:
        if transaction.in_msg is not None:
            texts.add(transaction.in_msg.source or "")
        texts.update(message.destination or "" for message in transaction.out_msgs)
    return {parse_address(text) for text in texts if text}


def _name_addresses(rows: Iterable[Row], messages: dict[bytes, list[Row]]) -> Iterator[Address]:
    """Accounts, sources of in messages, destinations of out messages."""
    for row in rows:
        yield Address(row["workchain"], row["account"])
        for message in messages[row["hash"]]:
            end = "source" if message["direction"] == "in" else "destination"
            if message[end] is not None:
                yield Address(message[f"{end}_workchain"], message[end])
