"""Draws arguments for the questions, hot and cold ones; a lake always gives the same arguments."""

import random
from collections.abc import Callable
from typing import Any

import duckdb
import msgspec

from tonlake.api.text.encoding import Address

HOT_ACCOUNTS = 10
COLD_TRANSACTIONS = (100, 1000)
"""A cold account has so many transactions: a page of 100 is full, and spread over the lake."""
STATES_AT_ONCE = 1000
HOUR_S = 3600

COUNTED = """
create or replace temp table counted as
select workchain, account, count(*) as transactions, max(lt) as last_lt, min(lt) as first_lt
from transactions group by workchain, account
"""
HOT = "select workchain, account, transactions from counted order by transactions desc limit $1"
COLD = """
select workchain, account, transactions from counted
where transactions between $1 and $2 order by account limit $3
"""
ANY = "select workchain, account, transactions from counted order by account limit $1"
NTH = """
select lt from transactions where workchain = $1 and account = $2
order by lt desc limit 1 offset $3
"""


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
    deep: tuple[Address, int, int]
    """The hottest account, an offset near its end, and the logical time there."""
    hours: list[tuple[int, int]]


def draw_arguments(rows: duckdb.DuckDBPyConnection, count: int, seed: int) -> Draw:
    """Draw ``count`` arguments of each kind, fewer where the lake has fewer."""
    rng = random.Random(seed)  # noqa: S311 - a repeatable draw is wanted
    rows.execute(COUNTED)
    hottest = rows.execute(HOT, [HOT_ACCOUNTS]).fetchall()
    cold = _addresses(rows, COLD, [*COLD_TRANSACTIONS, count])
    everyone = _addresses(rows, ANY, [max(count, STATES_AT_ONCE * 4)])
    workchain, account, transactions = hottest[0]
    offset = min(1_000_000, transactions - 101) if transactions > 101 else 0
    deep_lt = rows.execute(NTH, [workchain, account, offset]).fetchall()[0][0]
    pick: Callable[[str], list[Any]] = lambda sql: [  # noqa: E731
        value for (value,) in rows.execute(sql, [count]).fetchall()
    ]
    times = rows.execute("select min(now), max(now) from transactions").fetchall()[0]
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
        hot=[Address(*row[:2]) for row in hottest],
        cold=cold or everyone[:count],
        accounts=everyone,
        deep=(Address(workchain, account), offset, deep_lt),
        hours=[_hour(rng, *times) for _ in range(count)],
    )


def _addresses(rows: duckdb.DuckDBPyConnection, sql: str, arguments: list[int]) -> list[Address]:
    return [Address(*row[:2]) for row in rows.execute(sql, arguments).fetchall()]


def _hour(rng: random.Random, first_s: int, last_s: int) -> tuple[int, int]:
    start_s = rng.randint(first_s, max(first_s, last_s - HOUR_S))
    return start_s, start_s + HOUR_S - 1
