"""Records of a segment: a transaction, its messages, and the account states around it.

There are five kinds of rows in a segment. Each column is encoded according to a letter, its code:
``.`` for columns that are always part of the shape (module ``shape``), ``i`` for integers, ``l``
for integers close to the transaction's logical time, ``p`` to that of the account's previous
transaction, ``t`` to its Unix seconds, ``g`` to the gas that the previous column costs, ``r`` for
shards, ``b`` for bytes, ``n`` for bytes determined by the previous column, ``h`` for hashes with
few values, ``o`` for the first bytes of a body as a number, ``s`` for text, ``a`` for unbounded
integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.schema import ACCOUNT_STATES, MESSAGES, TRACES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.lake.schema import Table


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

STATE_COLUMNS = (
    *("mc_seqno", "hash", "account_status", "balance", "extra_currencies", "last_trans_lt"),
    *("last_trans_hash", "frozen_hash", "code_hash", "data_hash"),
)
"""Columns of an account's newest state, as in ``v3/accounts``."""

_CODES = {"bool": ".", "text": ".", "hash": "b", "bytes": "b", "json": "s", "amount": "a"}
_CLOSE = {
    "prev_trans_lt": "p",
    "created_lt": "l",
    "last_trans_lt": "l",
    "created_at": "t",
    "start_lt": "l",
    "end_lt": "l",
    "start_utime": "t",
    "end_utime": "t",
    "compute_gas_used": "g",
    "shard": "r",
    "code_hash": "h",
    "opcode": "o",
    "body": "n",
}


class Kind(NamedTuple):
    """A kind of rows: its number, columns, their codes, and its row type.

    Rows have further columns that are not written: they are None, or filled in when read.
    ``width`` counts all columns. ``may_open`` are the positions of columns that shapes may leave
    open.
    """

    number: int
    columns: tuple[str, ...]
    codes: str
    row_type: Any
    width: int
    may_open: tuple[tuple[int, str], ...]


def make_row_type(name: str, columns: Sequence[str]) -> Any:  # noqa: ANN401
    """Return a row type of the C extension; None without the extension, as there is no index."""
    if NATIVE is None:
        return None
    return NATIVE.make_row_type(f"tonlake.lake.index.segment.record.{name}", tuple(columns))


def _make_kind(
    number: int, table: Table, columns: tuple[str, ...], added: tuple[str, ...] = ()
) -> Kind:
    types = {column.name: column.type for column in table.columns}
    codes = "".join(_CLOSE.get(name) or _CODES.get(types[name], "i") for name in columns)
    every = (*columns, *added)
    row_type = make_row_type(f"{table.name}_{number}", every)
    may_open = tuple((at, code) for at, code in enumerate(codes) if code != ".")
    return Kind(number, columns, codes, row_type, len(every), may_open)


TRANSACTION = _make_kind(0, TRANSACTIONS, TRANSACTION_COLUMNS, (*_IN_ARRAYS, "trace_id"))
MESSAGE = _make_kind(
    1, MESSAGES, MESSAGE_COLUMNS, ("tx_hash", "tx_lt", "in_tx_hash", "out_tx_hash")
)
FACTS = _make_kind(2, ACCOUNT_STATES, FACT_COLUMNS)
STATE = _make_kind(3, ACCOUNT_STATES, STATE_COLUMNS, ("workchain", "account"))
TRACE = _make_kind(
    4, TRACES, tuple(name for name in TRACES.names if name != "trace_id"), ("trace_id",)
)
KINDS = (TRANSACTION, MESSAGE, FACTS, STATE, TRACE)

Record: Any = make_row_type("Record", ("row", "messages", "before", "after"))
"""``before`` and ``after`` are None if the segment does not have the state."""

_SHOWN = ("msg_hash", "created_lt", "created_at", "direction")
SHOWN_PLACES = tuple(map(MESSAGE_COLUMNS.index, _SHOWN))

Found: Any = make_row_type("Found", (*_SHOWN, "tx_lt", "tx_hash", "segment", "row", "place"))
"""A message that passes filters: the sort key of pages, and where the rest of it is."""

Member: Any = make_row_type("Member", ("lt", "hash", "trace_id", "parent_hash", "segment", "row"))
"""A transaction found by its trace: a row of ``v3/trace_transactions``, and its position."""

IN_HASH = TRANSACTION_COLUMNS.index("in_msg_hash")
MESSAGE_HASH = MESSAGE_COLUMNS.index("msg_hash")
BODY = MESSAGE_COLUMNS.index("body")
