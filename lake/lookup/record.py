"""A transaction as a run keeps it: its row, its messages, and the account's states around it.

A record is MessagePack: ``[columns, messages, state before, state after]``. What the record's
neighbours or the run's arrays say already is written as ``true`` or left out: hashes do not
compress, so each is kept once. Records stand in the order of (account, workchain, lt), and
neighbours are compressed together.
"""

from __future__ import annotations

import struct
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from lake.schema import MESSAGES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDS_PER_BLOCK = 32
"""Measured on genuine rows: blocks of 16 take 9 % more bytes; LZ4 unpacks one in 5 us where zstd
needs 25 for 6 % fewer bytes."""

SAME = True
"""Stands for: the account's own id, the in message's hash, or what the record before says."""

_IN_ARRAYS = ("workchain", "account", "lt", "hash", "now", "mc_seqno", "account_state_hash_after")
_LEFT_OUT = frozenset({*_IN_ARRAYS, "time", "boc"})
_OF_TRANSACTION = ("tx_workchain", "tx_account", "tx_lt", "tx_hash", "mc_seqno", "now")

TRANSACTION_COLUMNS: tuple[str, ...] = tuple(
    name for name in TRANSACTIONS.names if name not in _LEFT_OUT
)
MESSAGE_COLUMNS: tuple[str, ...] = tuple(
    name for name in MESSAGES.names if name not in _OF_TRANSACTION
)
FACT_COLUMNS = (
    *("account_status", "balance", "extra_currencies"),
    *("frozen_hash", "data_hash", "code_hash"),
)
"""Columns of ``account_states`` that a transaction shows of the states around it."""


class KeyedRow(msgspec.Struct, array_like=True, gc=False):
    """A row whose columns are asked by name, as those of a query's answer are."""

    __getitem__ = object.__getattribute__

    def get(self, name: str, default: object = None) -> object:
        """Return a column, or ``default`` where the row has none of this name."""
        return getattr(self, name, default)


def _row_type(name: str, columns: Sequence[str], added: Sequence[str] = ()) -> Any:  # noqa: ANN401
    """Make the struct of a row; the columns ``added`` are set after decoding."""
    fields: list[Any] = [(column, Any) for column in columns]
    fields += [(column, Any, None) for column in added]
    return msgspec.defstruct(
        name, fields, bases=(KeyedRow,), array_like=True, gc=False, module=__name__
    )


TransactionRow: Any = _row_type("TransactionRow", TRANSACTION_COLUMNS, (*_IN_ARRAYS, "trace_id"))
MessageRow: Any = _row_type(
    "MessageRow", MESSAGE_COLUMNS, ("tx_hash", "tx_lt", "in_tx_hash", "out_tx_hash")
)
FactsRow: Any = _row_type("FactsRow", FACT_COLUMNS)


class Record(msgspec.Struct, array_like=True, gc=False):
    """A transaction, its messages, and the states around it.

    ``before`` and ``after`` are None where the run does not have the state.
    """

    row: Any
    messages: list[Any]
    before: Any
    after: Any


_Packed: Any = msgspec.defstruct(
    "_Packed",
    [
        ("row", TransactionRow),
        ("messages", list[MessageRow]),
        ("before", FactsRow | bool | None),
        ("after", FactsRow | None),
    ],
    bases=(Record,),
    array_like=True,
    gc=False,
)
PREVIOUS_HASH = TRANSACTION_COLUMNS.index("prev_trans_hash")
HASH_BEFORE = TRANSACTION_COLUMNS.index("account_state_hash_before")
_IN_HASH = TRANSACTION_COLUMNS.index("in_msg_hash")
_MESSAGE_HASH = MESSAGE_COLUMNS.index("msg_hash")
_DIRECTION = MESSAGE_COLUMNS.index("direction")
_EXTRA_FLAGS = MESSAGE_COLUMNS.index("extra_flags")
_ENDS = (MESSAGE_COLUMNS.index("source"), MESSAGE_COLUMNS.index("destination"))

_CODEC = pa.Codec("lz4_raw", compression_level=9)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode


def encode_record(
    account: bytes,
    columns: list[Any],
    messages: Sequence[list[Any]],
    before: object,
    after: object,
) -> bytes:
    """Return a record; ``columns`` and ``messages`` are changed on the way."""
    for message in messages:
        if message[_DIRECTION] == "in" and message[_MESSAGE_HASH] == columns[_IN_HASH]:
            columns[_IN_HASH] = SAME
        for end in _ENDS:
            if message[end] == account:
                message[end] = SAME
        if message[_EXTRA_FLAGS] is not None:
            # A whole number beyond 64 bits, which MessagePack has no form for.
            message[_EXTRA_FLAGS] = format(message[_EXTRA_FLAGS], "f")
    return _encode((columns, messages, before, after))


def decode_record(data: memoryview, account: bytes) -> Record:
    """Return a record with own accounts and in hash filled in, but not what stands before it."""
    record: Record = _decode(data)
    row = record.row
    for message in record.messages:
        if message.source is SAME:
            message.source = account
        if message.destination is SAME:
            message.destination = account
        if message.extra_flags is not None:
            message.extra_flags = int(message.extra_flags)
        if row.in_msg_hash is SAME and message.direction == "in":
            row.in_msg_hash = message.msg_hash
    return record


def pack_block(records: Sequence[bytes]) -> tuple[bytes, int]:
    """Return records compressed together, and their size before that."""
    sizes = struct.pack(f"<{len(records)}I", *map(len, records))
    block = sizes + b"".join(records)
    return _CODEC.compress(block, asbytes=True), len(block)


def unpack_block(data: memoryview, size: int) -> memoryview:
    """Return what ``pack_block`` compressed."""
    return memoryview(_CODEC.decompress(data, size))


def find_records(block: memoryview, count: int) -> list[int]:
    """Return where the ``count`` records of an unpacked block begin, and where the last ends."""
    return list(accumulate(struct.unpack_from(f"<{count}I", block), initial=4 * count))
