"""What a segment has of each table: copies of rows, columns of numbers, postings and orders."""

from collections import namedtuple
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from tonlake.lake.schema import TABLES

LT, UTIME = "q", "I"
"""Types of columns of numbers: signed 64-bit and unsigned 32-bit, by their codes in ``array``."""

NO_LT = (1 << 63) - 1
"""Stands for NULL in a column of logical times: sorts after all others."""

ABSENT = {LT: NO_LT, UTIME: (1 << 32) - 1}
"""Stands for NULL in a column of numbers, by its type."""


_VARYING = {
    "transactions": (
        *("aborted", "action_success", "credit_first", "shard", "outmsg_cnt"),
        *("action_msgs_created", "action_tot_actions", "action_total_fwd_fees"),
        *("action_tot_msg_size_cells", "action_total_action_fees", "action_tot_msg_size_bits"),
        *("compute_gas_limit", "storage_fees_collected", "action_list_hash", "compute_gas_fees"),
        *("compute_vm_steps", "compute_gas_used", "credit", "total_fees", "block_seqno"),
        "prev_trans_hash",
    ),
    "messages": (
        *("created_lt", "opcode", "source", "destination", "value", "body_hash", "body"),
        "msg_hash",
    ),
}
"""Columns that differ from row to row are the last ones in copies, so that the others compress as
one piece: 8 % fewer bytes of transactions."""


def _order_columns(table: str, left_out: Collection[str]) -> tuple[str, ...]:
    last = _VARYING.get(table, ())
    kept = [name for name in TABLES[table].names if name not in left_out]
    return tuple(sorted(kept, key=lambda name: last.index(name) if name in last else -1))


class Indexed(NamedTuple):
    """A table in segments: its rows are sorted, copied, and found by the values of some columns."""

    name: str
    sort: tuple[str, ...]
    """The order of the rows; those of equal keys stay in the order of the files."""
    numbers: dict[str, str]
    """Columns that are read without a row, with their types."""
    hashes: tuple[str, ...] = ()
    """Columns of hashes with postings."""
    keys: tuple[str, ...] = ()
    """Columns of integers with postings, by their low 32 bits."""
    orders: tuple[tuple[str, ...], ...] = ()
    """Further orders of all rows, each named by its first column."""
    left_out: frozenset[str] = frozenset()
    """Columns that are not copied."""
    once: bool = False
    """Whether postings on columns other than ``account`` have only the first row of each account
    with a value."""

    @property
    def copied(self) -> tuple[str, ...]:
        """The columns in the copies of rows."""
        return _order_columns(self.name, self.left_out.union(self.numbers))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the rows."""
        return (*self.copied, *self.numbers)


def _contracts(name: str, *addresses: str) -> Indexed:
    """Return a table of contracts: each row is the state of one from a masterchain block on."""
    return Indexed(name, ("mc_seqno",), {"mc_seqno": LT}, addresses, once=True)


def _transfers(name: str, *addresses: str) -> Indexed:
    """Return a table of transfers or burns."""
    return Indexed(name, ("lt",), {"lt": LT, "now": LT}, addresses, orders=(("now", "lt"),))


_OF_TRANSACTION = frozenset({"tx_workchain", "tx_account", "tx_lt", "tx_hash", "mc_seqno", "now"})
_TIME = frozenset({"time"})
_ACTION_END = {"trace_end_lt": LT, "trace_end_utime": UTIME}

TRANSACTIONS = Indexed(
    "transactions",
    ("mc_seqno", "lt", "workchain", "account"),
    {"lt": LT, "now": UTIME},
    left_out=frozenset(
        {"workchain", "account", "hash", "mc_seqno", "time", "boc", "account_state_hash_after"}
    ),
)
"""A copy also has the messages of the transaction, and the states around it."""

FROM_PREVIOUS = {"prev_trans_lt": "lt", "account_state_hash_before": "account_state_hash_after"}
"""Columns that are NULL in a copy if those of the account's previous transaction are the same."""

OWN = -1
"""In place of a number in an address of a message: that of the transaction's account."""

OF_MESSAGE = ("body_hash", "hash_norm")
"""Columns of messages in copies whose numbers are relative to that of ``msg_hash`` if they are
beyond it: -1 is the next one. So are those of ``action_list_hash`` and ``data_hash`` to that of the
state after the transaction; the number of ``msg_hash`` always is, as a difference."""

MESSAGES = Indexed(
    "messages",
    ("created_lt", "msg_hash"),
    {"created_lt": LT, "created_at": UTIME},
    ("msg_hash", "hash_norm", "body_hash", "source", "destination"),
    ("opcode",),
    (("created_at", "msg_hash"),),
    left_out=frozenset(TABLES["messages"].names) - {"created_lt", "created_at"},
)
"""Messages are read from the copies of their transactions."""

ACCOUNT_STATES = Indexed(
    "account_states",
    ("account", "workchain", "mc_seqno", "block_seqno"),
    {},
    left_out=frozenset(TABLES["account_states"].names)
    - {
        *("mc_seqno", "hash", "account_status", "balance", "extra_currencies", "last_trans_lt"),
        *("last_trans_hash", "frozen_hash", "code_hash", "data_hash"),
    },
)
"""Only the newest state of each account."""

TRACES = Indexed(
    "traces",
    ("end_lt", "trace_id"),
    {"end_lt": LT, "end_utime": UTIME},
    ("trace_id",),
    ("mc_seqno_end",),
    (("end_utime", "trace_id"),),
)
BLOCKS = Indexed(
    "blocks",
    ("mc_seqno", "workchain", "shard", "seqno"),
    {"gen_utime": UTIME, "start_lt": LT},
    ("root_hash", "file_hash"),
    ("mc_seqno", "seqno"),
    (("gen_utime", "start_lt"),),
    left_out=_TIME,
)
SHARD_BLOCKS = Indexed("shard_blocks", ("mc_seqno", "workchain", "shard"), {}, keys=("mc_seqno",))
ACTIONS = Indexed(
    "actions",
    ("trace_end_lt", "trace_id", "end_lt", "action_id"),
    _ACTION_END,
    ("trace_id", "action_id"),
    ("mc_seqno",),
    (("trace_end_utime", "trace_id", "end_utime", "action_id"),),
)
ACTION_ACCOUNTS = Indexed(
    "action_accounts",
    ("account", "workchain", "trace_end_lt", "trace_id", "end_lt", "action_id"),
    _ACTION_END,
)
CONTRACTS = (
    _contracts("jetton_masters", "account", "admin"),
    _contracts("jetton_wallets", "account", "owner", "jetton"),
    _contracts("nft_collections", "account", "owner"),
    _contracts("nft_items", "account", "collection", "owner"),
    _contracts("nft_sales", "account", "nft_owner"),
    _contracts("dns_records", "account", "wallet"),
    _contracts("multisig_wallets", "account"),
    _contracts("multisig_orders", "account", "multisig"),
    _contracts("vesting_contracts", "account"),
)
TRANSFERS = (
    _transfers("jetton_transfers", "account", "jetton", "source", "destination"),
    _transfers("jetton_burns", "account", "jetton", "owner"),
    _transfers("nft_transfers", "account", "collection", "old_owner", "new_owner"),
)
INDEXED: dict[str, Indexed] = {
    table.name: table
    for table in (
        *(TRANSACTIONS, MESSAGES, ACCOUNT_STATES, TRACES, BLOCKS, SHARD_BLOCKS),
        *(ACTIONS, ACTION_ACCOUNTS, *CONTRACTS, *TRANSFERS),
    )
}

ACCOUNTS = (TRANSACTIONS.name, ACCOUNT_STATES.name, ACTION_ACCOUNTS.name)
"""Tables whose rows are listed by account."""


def workchain_of(column: str) -> str:
    """Return the name of the workchain column of an address column."""
    return "workchain" if column == "account" else f"{column}_workchain"


class _ByName:
    """Reads columns of a row by name, as those of a dict."""

    __slots__ = ()

    __getitem__ = object.__getattribute__

    def keys(self) -> Iterable[str]:
        """Return the names of the columns, so that ``dict`` takes a row."""
        names: tuple[str, ...] = self._fields  # type: ignore[attr-defined]
        return names

    def get(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - of the column
        """Return a column, or ``default`` if the type of rows does not have it."""
        return getattr(self, name, default)


@cache
def make_row_type(name: str, columns: tuple[str, ...]) -> Any:  # noqa: ANN401 - a type
    """Return a type of rows: tuples whose columns are read as attributes, or by name."""
    return type(name, (_ByName, namedtuple(name, columns)), {"__slots__": ()})  # noqa: PYI024 - columns from the schema


make_row = tuple.__new__
"""Makes a row of a type from its values, in order."""

MESSAGE_COLUMNS = _order_columns("messages", _OF_TRANSACTION)
TRANSACTION_COLUMNS = TRANSACTIONS.copied
STATE_COLUMNS = ACCOUNT_STATES.copied
FACT_COLUMNS = (
    *("account_status", "balance", "extra_currencies"),
    *("frozen_hash", "data_hash", "code_hash"),
)
"""Columns of ``account_states`` that a transaction shows of the states around it."""

_READ = (
    *(*TRANSACTIONS.numbers, "hash", "workchain", "account", "mc_seqno", "trace_id"),
    "account_state_hash_after",
)
RECORD_COLUMNS = (*TRANSACTIONS.copied, "messages", "before", "after", *_READ)
"""What the list of a record has: a transaction, the lists of its messages and of the states."""

Transaction = make_row_type("Transaction", (*TRANSACTIONS.copied, *_READ))
Message = make_row_type(
    "Message", (*MESSAGE_COLUMNS, "tx_hash", "tx_lt", "in_tx_hash", "out_tx_hash")
)
State = make_row_type("State", (*STATE_COLUMNS, "workchain", "account"))
Facts = make_row_type("Facts", FACT_COLUMNS)


class Record(NamedTuple):
    """A transaction, its messages, ``in`` first, and the states around it, None if unknown."""

    row: Any
    messages: list[Any]
    before: Any
    after: Any


def make_record(
    row: Any,  # noqa: ANN401 - a row, as the others
    messages: Iterable[Any],
    states: Mapping[tuple[int, bytes, bytes], Any],
) -> Record:
    """Return the record of a transaction; ``states`` are by workchain, account and hash."""
    workchain, account = row["workchain"], row["account"]
    return Record(
        row,
        sorted(messages, key=itemgetter("direction", "msg_index")),
        states.get((workchain, account, row["account_state_hash_before"])),
        states.get((workchain, account, row["account_state_hash_after"])),
    )
