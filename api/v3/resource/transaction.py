"""Transactions in the form of version 3, from rows or from a bag of cells."""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import msgspec

from tonlake.api.text.native import NATIVE
from tonlake.api.v3.layout.build import compile_struct, make_builder, place_column
from tonlake.api.v3.layout.transaction import Transaction
from tonlake.ingest.decode.block.state import NONEXIST_HASH
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.index.answer.transactions import Records
from tonlake.lake.index.segment.declared import (
    FACT_COLUMNS,
    MESSAGE_COLUMNS,
    RECORD_COLUMNS,
    Record,
    make_record,
)
from tonlake.lake.index.segment.segment import PARTS_AT
from tonlake.queries.reader import Row

Account = tuple[int, bytes]
"""Workchain and account id."""

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
"""Of records: columns of direction and state hashes, the place of messages in a list, the word
``in``, hash and rows of states that do not exist or are not known.
"""

_LISTS = (RECORD_COLUMNS, MESSAGE_COLUMNS, MESSAGE_COLUMNS, FACT_COLUMNS, FACT_COLUMNS)
"""Columns of the sources of a transaction whose record is a list."""


def render_transaction(record: Record, opcode_format: str) -> Transaction:
    """Return the struct of a record, whose row has trace_id if that is known.

    Columns of the row about its block may be None.
    """
    row, messages, *states = record
    hashes = row["account_state_hash_before"], row["account_state_hash_after"]
    around = (
        _NONEXIST if state_hash == NONEXIST_HASH else _UNKNOWN if state is None else state
        for state_hash, state in zip(hashes, states, strict=True)
    )
    received = [message for message in messages if message["direction"] == "in"]
    in_msg = received[0] if received else None
    build = make_builder(Transaction, opcode_format)
    transaction: Transaction = build((row, in_msg, messages[len(received) :], *around))
    return transaction


def write_records(
    records: Iterable[Any], opcode_format: str, read: Read | None = None
) -> tuple[list[Any], set[Account]]:
    """Return transactions as JSON, and the accounts of their address book.

    ``read`` is called with some records, as they are written, and the values that numbers stand
    for: then each transaction is in a pair with what it returned of its record.
    """
    named: set[Account] = set()
    write = _make_native_writer(opcode_format) if NATIVE else partial(_write_structs, opcode_format)

    def write_some(some: list[Any], values: memoryview | bytes) -> list[Any]:
        texts = write(some, named, values)
        return texts if read is None else list(zip(texts, read(some, values), strict=True))

    if NATIVE and isinstance(records, Records):
        return records.write(write_some), named
    return write_some(list(records), b""), named


@cache
def _make_native_writer(opcode_format: str) -> Callable[..., list[bytes]]:
    """Return the function that writes transactions from their records.

    It adds the accounts of the address book to its second argument; the third has the 32-byte
    values that numbers stand for.
    """
    return partial(
        NATIVE.write_records, compile_struct(Transaction, opcode_format, _LISTS), _RECORD
    )


def _write_structs(
    opcode_format: str, records: Iterable[Record], named: set[Account], _values: bytes
) -> list[bytes]:
    """Do the same in Python."""
    texts = []
    for record in records:
        named.add((record.row["workchain"], record.row["account"]))
        for message in record.messages:
            end = _NAMED[message["direction"]]
            if message[end] is not None:
                named.add((message[f"{end}_workchain"], message[end]))
        texts.append(msgspec.json.encode(render_transaction(record, opcode_format)))
    return texts


_NAMED = {"in": "source", "out": "destination"}
"""By direction: the end of a message that is not the transaction's account."""


def render_decoded(
    data: bytes, opcode_format: str, *, global_version: int | None = None
) -> Transaction:
    """Return the transaction in a bag, without block and state. Raises BocError, DecodeError."""
    row, messages = decode_transaction(data, global_version=global_version)
    row["workchain"] = find_workchain(messages)
    return render_transaction(make_record(row, messages, {}), opcode_format)


def find_workchain(messages: Iterable[Row]) -> int:
    """Return the workchain that messages state; a tick or tock without any is a masterchain's."""
    for message in messages:
        end = "destination" if message["direction"] == "in" else "source"
        if message[f"{end}_workchain"] is not None:
            return int(message[f"{end}_workchain"])
    return MASTERCHAIN
