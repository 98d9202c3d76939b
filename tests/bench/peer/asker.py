"""Answers the same questions from PostgreSQL, with the peer's statements."""

from collections.abc import Sequence
from typing import Any

import psycopg

from tests.ingest.simulator.model import encode_hash
from tonlake.api.text.encoding import Address

_MESSAGES = """
select messages.*, body.body, state.body as init_state_body
from messages
left join message_contents as body on body.hash = body_hash
left join message_contents as state on state.hash = init_state_hash
where tx_hash = any(%s)
"""
"""The statement that the peer sends after every page of transactions."""

_PAGE_OF_MESSAGES = """
select page.*, body.body, state.body as init_state_body
from (
    select * from messages where {where} order by created_lt desc, msg_hash desc limit {limit}
) as page
left join message_contents as body on body.hash = body_hash
left join message_contents as state on state.hash = init_state_hash
order by created_lt desc, msg_hash desc
"""
"""The peer groups both ends of each message before it cuts the page; this is quicker."""

_BY_MESSAGE = _PAGE_OF_MESSAGES.format(where="msg_hash = %s or msg_hash_norm = %s", limit=10)
_BY_BODY = _PAGE_OF_MESSAGES.format(where="body_hash = %s", limit=10)
_BY_OPCODE = _PAGE_OF_MESSAGES.format(where="opcode = %s", limit=100)

Rows = list[tuple[Any, ...]]


class Peer:
    """One session; each method answers one kind of question, as in ``Access``."""

    def __init__(self, connection: psycopg.Connection) -> None:
        """Take a connection in autocommit mode."""
        self._connection = connection

    @property
    def pid(self) -> int:
        """The server's process of this session."""
        return self._connection.info.backend_pid

    def _ask(self, sql: str, *arguments: object) -> Rows:
        return self._connection.execute(sql.encode(), arguments or None, prepare=True).fetchall()

    def _with_messages(self, page: Rows) -> Rows:
        """Query the messages of a page of transactions, whose second column is the hash."""
        if page:
            self._ask(_MESSAGES, [row[1] for row in page])
        return page

    def transaction(self, tx_hash: bytes) -> Rows:
        """Return a transaction with its messages."""
        sql = "select * from transactions where hash = %s"
        return self._with_messages(self._ask(sql, encode_hash(tx_hash)))

    def account_page(self, page: tuple[Address, int]) -> Rows:
        """Return the newest transactions of an account, at most ``limit``."""
        account, limit = page
        sql = "select * from transactions where account = %s order by account, lt desc limit %s"
        return self._with_messages(self._ask(sql, str(account), limit))

    def block(self, mc_seqno: int) -> Rows:
        """Return the transactions of a masterchain block, at most 1000."""
        sql = (
            "select * from transactions where mc_block_seqno = %s "
            "order by lt desc, account limit 1000"
        )
        return self._with_messages(self._ask(sql, mc_seqno))

    def message(self, msg_hash: bytes) -> Rows:
        """Return a message by its hash."""
        return self._ask(_BY_MESSAGE, encode_hash(msg_hash), encode_hash(msg_hash))

    def body(self, body_hash: bytes) -> Rows:
        """Return the newest messages with a body."""
        return self._ask(_BY_BODY, encode_hash(body_hash))

    def opcode(self, opcode: int) -> Rows:
        """Return the newest messages with an opcode."""
        return self._ask(_BY_OPCODE, opcode)

    def trace(self, tx_hash: bytes) -> Rows:
        """Return all transactions of the trace that a transaction belongs to."""
        sql = (
            "select * from transactions where trace_id = "
            "(select trace_id from transactions where hash = %s limit 1) "
            "order by trace_id, lt, account"
        )
        return self._with_messages(self._ask(sql, encode_hash(tx_hash)))

    def states(self, accounts: Sequence[Address]) -> Rows:
        """Return the newest states of accounts."""
        sql = "select * from latest_account_states where account = any(%s) limit 1000"
        return self._ask(sql, list(map(str, accounts)))

    def top_balances(self, _argument: object) -> Rows:
        """Return the richest hundred accounts."""
        sql = "select account, balance from latest_account_states order by balance desc limit 100"
        return self._ask(sql)

    def by_hour(self, _argument: object) -> Rows:
        """Count all transactions by hour and exit code."""
        return self._ask(
            "select now / 3600, compute_exit_code, count(*) from transactions group by 1, 2"
        )

    def destinations(self, _argument: object) -> Rows:
        """Return the accounts that received most."""
        return self._ask(
            "select destination, sum(value) from messages where direction = 'in' "
            "and value is not null group by destination order by 2 desc limit 100"
        )
