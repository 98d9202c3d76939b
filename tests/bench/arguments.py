"""Draws arguments for the questions, hot and cold ones; a lake always gives the same arguments."""

from collections.abc import Callable
from typing import Any

import duckdb
import msgspec

from tonlake.api.text.encoding import Address

HOT_ACCOUNTS = 10
COLD_TRANSACTIONS = (100, 1000)
"""Transactions of a cold account: a page of 100 is full, and spread over the lake."""
STATES_AT_ONCE = 1000

COUNTED = """
create or replace temp table counted as
select workchain, account, count(*) as transactions
from transactions group by workchain, account
"""
HOT = "select workchain, account, transactions from counted order by transactions desc limit $1"
COLD = """
select workchain, account, transactions from counted
where transactions between $1 and $2 order by account limit $3
"""
ANY = "select workchain, account, transactions from counted order by account limit $1"


class Draw(msgspec.Struct, frozen=True):
    """Arguments of every kind; each list is as long as the lake allows."""

    rows: dict[str, int]
    transactions: list[bytes]
    messages: list[bytes]
    bodies: list[bytes]
    opcodes: list[int]
    blocks: list[int]
    hot: list[Address]
    cold: list[Address]
    accounts: list[Address]


def draw_arguments(rows: duckdb.DuckDBPyConnection, count: int) -> Draw:
    """Draw ``count`` arguments of each kind, fewer where the lake has fewer."""
    rows.execute(COUNTED)
    cold = _addresses(rows, COLD, [*COLD_TRANSACTIONS, count])
    everyone = _addresses(rows, ANY, [max(count, STATES_AT_ONCE * 4)])
    pick: Callable[[str], list[Any]] = lambda sql: [  # noqa: E731
        value for (value,) in rows.execute(sql, [count]).fetchall()
    ]
    return Draw(
        rows={
            name: rows.execute(sql).fetchall()[0][0]
            for name, sql in {
                "transactions": "select count(*) from transactions",
                "messages": "select count(*) from messages",
                "accounts": "select count(*) from counted",
                "hottest account": "select max(transactions) from counted",
            }.items()
        },
        transactions=pick("select hash from transactions order by hash limit $1"),
        messages=pick("select distinct msg_hash from messages order by msg_hash limit $1"),
        bodies=pick("select distinct body_hash from messages order by body_hash limit $1"),
        opcodes=pick(
            "select opcode from messages where opcode is not null group by opcode "
            "order by count(*) desc, opcode limit least($1, 50)"
        ),
        blocks=pick("select distinct mc_seqno from transactions order by hash(mc_seqno) limit $1"),
        hot=_addresses(rows, HOT, [HOT_ACCOUNTS]),
        cold=cold or everyone[:count],
        accounts=everyone,
    )


def _addresses(rows: duckdb.DuckDBPyConnection, sql: str, arguments: list[int]) -> list[Address]:
    return [Address(*row[:2]) for row in rows.execute(sql, arguments).fetchall()]
