"""Answers the questions through the functions that the API calls."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tonlake.api.request.call import Call
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.api.text.encoding import Address
from tonlake.api.v3.page.book import read_accounts
from tonlake.api.v3.page.operation import Page
from tonlake.api.v3.page.transaction_page import TransactionsQuery, find_keys, read_records
from tonlake.api.v3.route.account import get_top_accounts
from tonlake.api.v3.route.block import MessagesQuery, find_rows
from tonlake.api.v3.route.trace import TracesQuery, _find_traces, _read_members
from tonlake.lake.duck.connection import connect

Row = dict[str, Any]

BY_HOUR = """
select now // 3600 as hour, compute_exit_code, count(*) as transactions
from transactions
group by all
"""
DESTINATIONS = """
select destination_workchain, destination, sum(value) as total
from messages
where direction = 'in' and value is not null
group by all
order by total desc
limit 100
"""


def _rows_of(records: Iterable[Any]) -> list[Row]:
    return [record.row for record in records]


class Access:
    """One lake, opened as the API opens it; each method answers one kind of question."""

    def __init__(self, lake_dir: Path, settings: Settings) -> None:
        """Open the newest snapshot."""
        self._holder = SnapshotHolder(lake_dir, settings)
        self._settings = settings
        reader = self._holder.reader(timeout_ms=0)
        self._sql = connect(reader.snapshot, settings.lake)

    def _call(self) -> Call:
        """Return the fresh state of one request."""
        return Call(self._settings, self._holder.reader(timeout_ms=0))

    def _transactions(self, query: TransactionsQuery) -> list[Row]:
        call = self._call()
        return _rows_of(read_records(call, find_keys(call, query)))

    def transaction(self, tx_hash: bytes) -> list[Row]:
        """Return a transaction with its messages."""
        return self._transactions(TransactionsQuery(hash=(tx_hash,), limit=10, offset=0))

    def account_page(self, page: tuple[Address, int]) -> list[Row]:
        """Return the newest transactions of an account, at most ``limit``."""
        account, limit = page
        return self._transactions(TransactionsQuery(account=(account,), limit=limit, offset=0))

    def block(self, mc_seqno: int) -> list[Row]:
        """Return the transactions of a masterchain block, at most 1000."""
        return self._transactions(TransactionsQuery(mc_seqno=mc_seqno, limit=1000, offset=0))

    def _messages(self, query: MessagesQuery) -> list[Row]:
        return find_rows(self._call(), query)

    def message(self, msg_hash: bytes) -> list[Row]:
        """Return a message by its hash."""
        return self._messages(MessagesQuery(msg_hash=(msg_hash,), limit=10, offset=0))

    def body(self, body_hash: bytes) -> list[Row]:
        """Return the newest messages with a body."""
        return self._messages(MessagesQuery(body_hash=body_hash, limit=10, offset=0))

    def opcode(self, opcode: int) -> list[Row]:
        """Return the newest messages with an opcode."""
        return self._messages(MessagesQuery(opcode=opcode, limit=100, offset=0))

    def trace(self, tx_hash: bytes) -> list[Row]:
        """Return all transactions of the trace that a transaction belongs to."""
        call = self._call()
        traces = _find_traces(call, TracesQuery(tx_hash=(tx_hash,), limit=10, offset=0))
        members = _read_members(call, traces)
        keys = [key for trace in traces for key in members.get(trace["trace_id"], ())]
        return _rows_of(read_records(call, keys))

    def states(self, accounts: Sequence[Address]) -> list[Row]:
        """Return the newest states of accounts."""
        return list(read_accounts(self._call(), accounts).values())

    def top_balances(self, _argument: object) -> list[Any]:
        """Return the richest hundred accounts."""
        return get_top_accounts(self._call(), Page(limit=100, offset=0))

    def by_hour(self, _argument: object) -> list[tuple[Any, ...]]:
        """Count all transactions by hour and exit code."""
        return self._sql.execute(BY_HOUR).fetchall()

    def destinations(self, _argument: object) -> list[tuple[Any, ...]]:
        """Return the accounts that received most."""
        return self._sql.execute(DESTINATIONS).fetchall()
