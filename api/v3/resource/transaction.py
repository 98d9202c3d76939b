"""Transactions as version 3 writes them, from rows or from a bag of cells."""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tonlake.api.text.native import NATIVE
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.field import inner
from tonlake.api.v3.layout.native import (
    compile_record,
    compile_struct,
    make_record_writer,
    make_trace_writer,
    make_writer,
)
from tonlake.api.v3.layout.transaction import AccountState, Transaction
from tonlake.ingest.decode.block.account import NONEXIST_HASH
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tonlake.api.v3.layout.native import TraceWriter

    States = Mapping[tuple[int, bytes, bytes], Any]


Row = dict[str, Any]

_UNKNOWN: Row = {
    **dict.fromkeys(("balance", "account_status", "frozen_hash", "data_hash", "code_hash")),
    "extra_currencies": "null",
}
_NONEXIST: Row = _UNKNOWN | {
    "balance": 0,
    "extra_currencies": "{}",
    "account_status": "nonexist",
}


def render_transaction(
    row: Row, messages: Iterable[Row], states: States, opcode_format: str
) -> Transaction:
    """Return a transaction.

    Args:
        row: A row of ``transactions``, and trace_id where known; block columns may be None.
        messages: Its rows of ``messages``, by direction and place.
        states: Rows of ``account_states`` by workchain, account and state hash.
        opcode_format: ``hex`` or ``integer``.
    """
    build = make_builder(Transaction, opcode_format)
    transaction: Transaction = build(_list_sources(row, messages, states))
    return transaction


def render_state(row: Row, column: str, states: States) -> AccountState:
    """Return the state whose hash stands in a column of a row with workchain and account.

    It is filled in if it is known; one that does not exist needs no row to be known.
    """
    build = make_builder(AccountState, made=inner(source=1, hash=column))
    state: AccountState = build((row, _find_state(row, column, states)))
    return state


def find_writer(
    opcode_format: str,
) -> Callable[[Row, Iterable[Row], States], bytes] | None:
    """Return what writes a transaction as ``render_transaction`` does; None without the extension.

    It takes a row, its messages, and all known states.
    """
    if NATIVE is None:
        return None
    write = make_writer(_compile(opcode_format))
    return lambda row, messages, states: write(_list_sources(row, messages, states))


def find_record_writer(
    opcode_format: str,
) -> Callable[[Iterable[Any]], tuple[list[bytes], set[tuple[int, bytes]]]] | None:
    """Return what writes transactions from their records, as ``find_writer`` does from their parts.

    It returns them with the accounts, by workchain and id, that belong into their address book.
    """
    if NATIVE is None:
        return None
    write = _make_record_writer(opcode_format)

    def write_records(records: Iterable[Any]) -> tuple[list[bytes], set[tuple[int, bytes]]]:
        named: set[tuple[int, bytes]] = set()
        return write(list(records), named), named

    return write_records


def find_trace_writer(opcode_format: str) -> TraceWriter | None:
    """Return what writes a trace as ``render_trace`` does; None without the extension."""
    return None if NATIVE is None else make_trace_writer(_compile(opcode_format), _compile_record())


@cache
def _make_record_writer(opcode_format: str) -> Callable[..., list[bytes]]:
    return make_record_writer(_compile(opcode_format), _compile_record())


@cache
def _compile_record() -> Any:  # noqa: ANN401 - the extension's
    return compile_record((NONEXIST_HASH, _NONEXIST), _UNKNOWN)


@cache
def _compile(opcode_format: str) -> Any:  # noqa: ANN401 - the extension's
    return compile_struct(Transaction, opcode_format)


def _list_sources(row: Row, messages: Iterable[Row], states: States) -> tuple[Any, ...]:
    """Return what a transaction is made of, in the order of the sources of its layout."""
    listed = sorted(messages, key=itemgetter("msg_index"))
    return (
        row,
        next((message for message in listed if message["direction"] == "in"), None),
        [message for message in listed if message["direction"] != "in"],
        _find_state(row, "account_state_hash_before", states),
        _find_state(row, "account_state_hash_after", states),
    )


def _find_state(row: Row, column: str, states: States) -> Any:  # noqa: ANN401 - a row
    if row[column] == NONEXIST_HASH:
        return _NONEXIST
    return states.get((row["workchain"], row["account"], row[column]), _UNKNOWN)


def render_decoded(
    data: bytes, opcode_format: str, *, global_version: int | None = None
) -> Transaction:
    """Return the transaction in a bag of cells; fields of block and state are null.

    Raises:
        BocError, DecodeError: ``data`` is no transaction.
    """
    row, messages = decode_transaction(data, global_version=global_version)
    row["workchain"] = find_workchain(messages)
    return render_transaction(row, messages, {}, opcode_format)


def find_workchain(messages: Iterable[Row]) -> int:
    """Return the workchain of a transaction's account, which is named by its messages alone.

    One without messages can only be a tick or tock, which exists in the masterchain alone.
    """
    for message in messages:
        end = "destination" if message["direction"] == "in" else "source"
        if message[f"{end}_workchain"] is not None:
            return int(message[f"{end}_workchain"])
    return MASTERCHAIN
