"""A transaction as a segment keeps it: its row, its messages, and the account's states around it.

Five kinds of rows stand in a segment. What each column needs is one letter, its code: ``.`` for
what is always part of the shape (module ``shape``), ``i`` for integers, ``l`` for those close
to the transaction's logical time, ``p`` to that of the account's transaction before, ``t`` to its
unix seconds, ``g`` to gas that costs the column before, ``r`` for shards, ``b`` for
bytes, ``n`` for those that go with the column before, ``h`` for hashes of few values, ``o`` for the
first bytes of a body as a number, ``s`` for text, ``a`` for integers without bound.
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
"""Columns of the newest state of an account, as ``v3/accounts`` gives them."""

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
    """A kind of rows: its number, columns, their codes, and the type of its rows.

    Rows have further columns, which are not written: None, or filled in on reading. Together
    they are ``width``. ``may_open`` are the places of columns that shapes may leave open.
    """

    number: int
    columns: tuple[str, ...]
    codes: str
    row_type: Any
    width: int
    may_open: tuple[tuple[int, str], ...]


def make_row_type(name: str, columns: Sequence[str]) -> Any:  # noqa: ANN401
    """Return a type of rows of the extension; None without it, as there is no index then."""
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
"""``before`` and ``after`` are None where the segment does not have the state."""

_SHOWN = ("msg_hash", "created_lt", "created_at", "direction")
SHOWN_PLACES = tuple(map(MESSAGE_COLUMNS.index, _SHOWN))

Found: Any = make_row_type("Found", (*_SHOWN, "tx_lt", "tx_hash", "segment", "row", "place"))
"""A message that filters leave: what pages are ordered by, and where the rest of it stands."""

IN_HASH = TRANSACTION_COLUMNS.index("in_msg_hash")
MESSAGE_HASH = MESSAGE_COLUMNS.index("msg_hash")
BODY = MESSAGE_COLUMNS.index("body")
