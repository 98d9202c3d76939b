"""A page of transactions with all that belongs to them: messages, account states, addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.address import Address
from api.v3.answer import Transactions
from api.v3.book import read_address_book
from api.v3.transaction import render_transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from api.call import Call

Row = dict[str, Any]
Key = dict[str, Any]
"""``hash`` and ``lt`` of a transaction: enough to find it without reading the whole table."""


def answer_transactions(call: Call, keys: Sequence[Key]) -> Transactions:
    """Return the transactions of the keys, in their order, and their address book."""
    rows, messages = read_transactions(call, keys)
    states = _read_states(call, rows)
    form = call.settings.opcode_format
    return Transactions(
        transactions=[render_transaction(row, messages[row["hash"]], states, form) for row in rows],
        address_book=read_address_book(call, _list_addresses(rows, messages)),
    )


def read_transactions(call: Call, keys: Sequence[Key]) -> tuple[list[Row], dict[bytes, list[Row]]]:
    """Return the rows of the keys in their order, and their messages by transaction hash."""
    if not keys:
        return [], {}
    hashes = [key["hash"] for key in keys]
    span = {"first_lt": min(key["lt"] for key in keys), "last_lt": max(key["lt"] for key in keys)}
    found = call.reader.rows("v3/transaction_rows", hashes=hashes, **span)
    messages: dict[bytes, list[Row]] = {tx_hash: [] for tx_hash in hashes}
    for row in call.reader.rows("v3/message_rows", tx_hashes=hashes, msg_hashes=[], **span):
        messages[row["tx_hash"]].append(row)
    by_hash = {row["hash"]: row for row in found}
    return [by_hash[tx_hash] for tx_hash in hashes], messages


def _read_states(call: Call, rows: Iterable[Row]) -> dict[tuple[int, bytes, bytes], Row]:
    """Return the account states around the transactions, as far as the lake has them."""
    wanted = {
        (row["workchain"], row["account"], row[column])
        for row in rows
        for column in ("account_state_hash_before", "account_state_hash_after")
    }
    if not wanted:
        return {}
    workchains, accounts, hashes = (list(part) for part in zip(*sorted(wanted), strict=True))
    found = call.reader.rows(
        "v3/account_states_by_hash", workchains=workchains, accounts=accounts, hashes=hashes
    )
    return {(row["workchain"], row["account"], row["hash"]): row for row in found}


def _list_addresses(rows: Iterable[Row], messages: dict[bytes, list[Row]]) -> Iterator[Address]:
    """Accounts, sources of in messages, destinations of out messages."""
    for row in rows:
        yield Address(row["workchain"], row["account"])
        for message in messages[row["hash"]]:
            end = "source" if message["direction"] == "in" else "destination"
            if message[end] is not None:
                yield Address(message[f"{end}_workchain"], message[end])
