"""Views read, of the tables that they join, what may have the rows that a filter leaves."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from duckdb import DuckDBPyConnection

from tonlake.lake.duck.connection import connect
from tonlake.lake.duck.tree import filter_accounts
from tonlake.lake.log.snapshot import open_snapshot

RARE = "select {0} from {1} where {0} is not null group by {0} order by count(*), {0} limit 1"
MIDDLE = "select quantile_disc(time, 0.5) from {}"
FILTERS = [
    ("v_messages", "messages", "sender_id", "source", "decoded"),
    ("decoded_messages", "messages", "source", "source", "decoded"),
    ("traced_messages", "messages", "source", "source", "trace_id"),
    ("traced_transactions", "transactions", "account", "account", "trace_id"),
    ("v_messages", "messages", "mc_seqno", "mc_seqno", "decoded"),
    ("v_transfers", "messages", "mc_seqno", "mc_seqno", "decoded"),
]
"""View, base table, the filtered column of each, and a column of the joined table."""


@pytest.fixture(scope="module")
def lake(demo_lake: Path) -> DuckDBPyConnection:
    return connect(open_snapshot(demo_lake))


def find_scans(node: dict[str, Any], column: str) -> Iterator[dict[str, Any]]:
    """Yield what a plan says of the scans that read a column."""
    facts = node.get("extra_info", {})
    if node["type"] == "TABLE_SCAN" and column in facts.get("Projections", ()):
        yield facts
    for child in node.get("children", ()):
        yield from find_scans(child, column)


@pytest.mark.parametrize(("view", "table", "column", "base", "joined"), FILTERS)
def test_a_filter_prunes_the_joined_table(
    lake: DuckDBPyConnection, view: str, table: str, column: str, base: str, joined: str
) -> None:
    value = lake.execute(RARE.format(base, table)).fetchall()[0][0]
    shown = f"unhex('{value.hex()}')" if isinstance(value, bytes) else value
    assert_prunes(lake, f"from {view} where {column} = {shown}", joined)


@pytest.mark.parametrize("view", ["v_messages", "v_transfers"])
def test_a_search_in_the_comments_of_a_time_prunes_the_bodies(
    lake: DuckDBPyConnection, view: str
) -> None:
    middle = lake.execute(MIDDLE.format(view)).fetchall()[0][0]
    assert_prunes(lake, f"from {view} where comment like '%e%' and time >= '{middle}'", "decoded")


def assert_prunes(lake: DuckDBPyConnection, statement: str, joined: str) -> None:
    """Check that the scans of a column of a joined table get the keys of the rows to join."""
    assert lake.execute(statement).fetchall()
    plan = lake.execute(f"explain (analyze, format json) {statement}").fetchall()[0][1]
    scans = [scan for node in json.loads(plan)["operator"] for scan in find_scans(node, joined)]
    assert scans
    for scan in scans:
        assert "Dynamic Filters" in scan or "mc_seqno = " in str(scan.get("Filters")), scan


@pytest.mark.parametrize("view", ["v_messages", "v_transfers", "v_jetton_transfers"])
def test_a_filter_on_time_reaches_the_files(lake: DuckDBPyConnection, view: str) -> None:
    middle = lake.execute(MIDDLE.format(view)).fetchall()[0][0]
    statement = f"explain (format json) from {view} where time = '{middle}'"
    todo, reached = json.loads(lake.execute(statement).fetchall()[0][1]), 0
    while todo:
        node = todo.pop()
        todo += node["children"]
        if "make_timestamp" in str(node["extra_info"].get("Filters")):
            reached += 1
        assert "make_timestamp" not in str(node["extra_info"].get("Expression")), node
    assert reached


ASKED = """select 'é', balance from v_accounts where @address = RAW
explain analyze from v_accounts where balance > 1 and (@address = RAW)
select * from V_Accounts as a join (from blocks limit 1) on true where a.address = RAW
select a.* from V_Accounts as a join labels as d using (account) where @a.address = RAW
select 1 where 1 in (select 1 from v_transfers where @sender in (RAW, RAW) and kind = 'ton')
select balance from v_accounts where not address in (RAW, RAW)
select balance from v_accounts where address = RAW or (address) = RAW
select address from v_accounts where address = RAW || label
from (select address, 'x' as account from v_accounts) where address = RAW
with v_accounts as (select 'a' as address) from v_accounts where address = RAW"""


@pytest.mark.parametrize("asked", ASKED.splitlines())
def test_an_address_compares_the_account(lake: DuckDBPyConnection, asked: str) -> None:
    raw = lake.execute("select mode(sender) from v_transfers").fetchall()[0][0]
    written = asked.replace("RAW", f"'{raw}'")
    account = f"unhex('{raw[-64:]}')"
    key = f"account = {account}" if "address" in asked else f"sender_id in ({account}, {account})"
    pruned = filter_accounts(lake, written.replace("@", ""))
    assert pruned == re.sub(r"@(\w+\.)?", rf"\g<1>{key} and \1", written)
    if "explain" not in asked:
        rows = lake.execute(written.replace("@", "")).fetchall()  # in no order
        assert sorted(lake.execute(pruned).fetchall(), key=repr) == sorted(rows, key=repr)


def test_undelivered_messages_are_in_the_view(lake: DuckDBPyConnection) -> None:
    """Compared with an anti join of the ends, which the view replaces by a left join."""
    expected = """
        select msg_hash from messages
        where direction = 'in' or kind = 'ext_out' or msg_hash not in (
            select msg_hash from messages where direction = 'in'
        ) order by all"""
    got = lake.execute("select msg_hash from v_messages order by all").fetchall()
    assert got == lake.execute(expected).fetchall()


MOVES = """
    with asked as (select unnest([0, -1]) as workchain, $account::blob as account),
    moves as not materialized (from moved_coins('messages'))
    from moves_of('moves', 'asked') select tx_hash, kind, incoming, outgoing order by all"""
TRANSFERS = """
    select tx_hash, kind, recipient_id = $account, sender_id = $account from v_transfers
    where kind in ('ton', 'extra_currency') and $account::blob in (sender_id, recipient_id)
    order by all"""


def test_moves_of_an_account_prune_by_either_end(lake: DuckDBPyConnection) -> None:
    asked = {"account": lake.execute(RARE.format("source", "messages")).fetchall()[0][0]}
    found = lake.execute(MOVES, asked).fetchall()
    assert found == lake.execute(TRANSFERS, asked).fetchall()
    assert found
    plan = lake.execute(f"explain (analyze, format json) {MOVES}", asked).fetchall()[0][1]
    scans = [scan for node in json.loads(plan)["operator"] for scan in find_scans(node, "source")]
    assert scans
    for scan in scans:
        assert "source = " in str(scan) or "destination = " in str(scan), scan
