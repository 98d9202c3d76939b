"""Transactions in the form of version 3, from rows or from a bag of cells."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import itemgetter
from typing import Any

from tonlake.api.text.native import NATIVE
from tonlake.api.v3.layout.build import (
    compile_struct,
    make_builder,
    make_record_writer,
    make_writer,
    place_column,
)
from tonlake.api.v3.layout.field import inner
from tonlake.api.v3.layout.transaction import AccountState, Transaction
from tonlake.ingest.decode.block.state import NONEXIST_HASH
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.index.answer.transactions import Records
from tonlake.lake.index.segment.declared import FACT_COLUMNS, MESSAGE_COLUMNS, RECORD_COLUMNS
from tonlake.lake.index.segment.segment import PARTS_AT
from tonlake.queries.reader import Row

States = Mapping[tuple[int, bytes, bytes], Any]
Read = Callable[[list[Any], memoryview | bytes], Iterable[Any]]


_UNKNOWN: Row = {
    **dict.fromkeys(("balance", "account_status", "frozen_hash", "data_hash", "code_hash")),
    "extra_currencies": "null",
}
_NONEXIST: Row = _UNKNOWN | {"balance": 0, "extra_currencies": "{}", "account_status": "nonexist"}
_RECORD = (
    place_column("direction", MESSAGE_COLUMNS),
    place_column("account_state_hash_before", RECORD_COLUMNS),
    place_column("account_state_hash_after", RECORD_COLUMNS),
    *(PARTS_AT, "in", NONEXIST_HASH, _NONEXIST, _UNKNOWN),
)
_LISTS = (RECORD_COLUMNS, MESSAGE_COLUMNS, MESSAGE_COLUMNS, FACT_COLUMNS, FACT_COLUMNS)
"""Columns of the sources of a transaction whose record is a list."""


def render_transaction(
    row: Row, messages: Iterable[Row], states: States, opcode_format: str
) -> Transaction:
    """Return a transaction from its row and its messages, by direction and index.

    The row has trace_id if that is known; block columns may be None. ``states`` are rows of
    ``account_states`` by workchain, account and state hash.
    """
    build = make_builder(Transaction, opcode_format)
    transaction: Transaction = build(_list_sources(row, messages, states))
    return transaction


def render_state(row: Row, column: str, states: States) -> AccountState:
    """Return the state whose hash is in a column: with all fields if it is known or nonexistent."""
    build = make_builder(AccountState, made=inner(source=1, hash=column))
    state: AccountState = build((row, _find_state(row, column, states)))
    return state


def find_writer(opcode_format: str) -> Callable[[Row, Iterable[Row], States], bytes] | None:
    """Return the native writer of row, messages and known states; None without the extension."""
    if NATIVE is None:
        return None
    write = make_writer(_compile(opcode_format))
    return lambda row, messages, states: write(_list_sources(row, messages, states))


def find_record_writer(
    opcode_format: str,
) -> Callable[..., tuple[list[Any], set[tuple[int, bytes]]]] | None:
    """Return the native writer of transactions from records; None without the C extension.

    It returns them with the accounts of their address book, by workchain and id. A second argument
    is called with some records, as they are written, and the values that numbers stand for: then
    each transaction is in a pair with what it returned of its record.
    """
    if NATIVE is None:
        return None
    write = _make_record_writer(opcode_format)

    def write_records(
        records: Iterable[Any], read: Read | None = None
    ) -> tuple[list[Any], set[tuple[int, bytes]]]:
        named: set[tuple[int, bytes]] = set()

        def write_some(some: list[Any], values: memoryview | bytes) -> list[Any]:
            texts = write(some, named, values)
            return texts if read is None else list(zip(texts, read(some, values), strict=True))

        if isinstance(records, Records):
            return records.write(write_some), named
        return write_some(list(records), b""), named

    return write_records


@cache
def _make_record_writer(opcode_format: str) -> Callable[..., list[bytes]]:
    return make_record_writer(_compile(opcode_format), _RECORD)


@cache
def _compile(opcode_format: str) -> Any:  # noqa: ANN401 - the extension's
    return compile_struct(Transaction, opcode_format, _LISTS)


def _list_sources(row: Row, messages: Iterable[Row], states: States) -> tuple[Any, ...]:
    """Return the rows of a transaction in the order of its layout's sources."""
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
    """Return the transaction in a bag, without block and state. Raises BocError, DecodeError."""
    row, messages = decode_transaction(data, global_version=global_version)
    row["workchain"] = find_workchain(messages)
    return render_transaction(row, messages, {}, opcode_format)


def find_workchain(messages: Iterable[Row]) -> int:
    """Return the workchain that messages state; a tick or tock without any is a masterchain's."""
    for message in messages:
        end = "destination" if message["direction"] == "in" else "source"
        if message[f"{end}_workchain"] is not None:
            return int(message[f"{end}_workchain"])
    return MASTERCHAIN
