"""Macros of the named queries that users may also call, against rows selected in Python."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from duckdb import DuckDBPyConnection

from tests.lake.chain import commit_made
from tests.lake.rows import make_table
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

Row = tuple[int, bytes, int, int]
WALLETS = "select workchain, account, mc_seqno, lt from jetton_wallets"
STATES = "select workchain, account, mc_seqno, block_seqno from account_states"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> DuckDBPyConnection:
    """A lake with many rows of few accounts."""
    lake = tmp_path_factory.mktemp("histories")
    for first, last in ((1, 20), (21, 40)):
        tables = {name: _make_history(name, first, last) for name in _ORDERS}
        commit_made(lake, first, last, tables)
    return connect(open_snapshot(lake))


_ORDERS = {"jetton_wallets": "lt", "account_states": "block_seqno"}


def _make_history(name: str, first: int, last: int) -> pa.Table:
    rows = make_table(name, first, last).to_pylist()
    for at, row in enumerate(rows):
        row |= {"workchain": 0, "account": bytes([at % 3]) * 32, "mc_seqno": first + at // 3 * 2}
        row |= {_ORDERS[name]: 1000 * first + at, "utime": 1_700_000_000 + row["mc_seqno"]}
    schema = make_table(name, first, last).schema
    return pa.Table.from_pylist(rows, schema=schema)


def _pick(rows: Iterable[Row], last: int) -> set[Row]:
    """Return the last row of every account up to a block."""
    newest: dict[bytes, Row] = {}
    for row in sorted(rows, key=lambda row: row[2:]):
        if row[2] <= last:
            newest[row[1]] = row
    return set(newest.values())


def _ask(connection: DuckDBPyConnection, query: str, **values: object) -> set[Any]:
    return set(connection.execute(query, values).fetchall())


@pytest.mark.parametrize("last", [0, 1, 6, 20, 21, 30, 1000])
def test_rows_as_of_a_block(connection: DuckDBPyConnection, last: int) -> None:
    wallets = WALLETS.replace("jetton_wallets", "as_of('jetton_wallets', $last)")
    assert _ask(connection, wallets, last=last) == _pick(_ask(connection, WALLETS), last)
    states = STATES.replace("account_states", "states_as_of('account_states', $last)")
    assert _ask(connection, states, last=last) == _pick(_ask(connection, STATES), last)


def test_the_newest_rows(connection: DuckDBPyConnection) -> None:
    newest = _pick(_ask(connection, WALLETS), 1000)
    assert len(newest) == 3
    views = ("latest('jetton_wallets')", "as_of('jetton_wallets', null)", "latest_jetton_wallets")
    for view in views:
        assert _ask(connection, WALLETS.replace("jetton_wallets", view)) == newest
    some = WALLETS.replace("jetton_wallets", "latest_of('jetton_wallets', $workchains, $accounts)")
    accounts = [bytes([1]) * 32, bytes([9]) * 32]
    found = _ask(connection, some, workchains=[0, 0], accounts=accounts)
    assert found == {row for row in newest if row[1] in accounts}
    assert not _ask(connection, some, workchains=[], accounts=[])


def test_a_wallet_has_one_balance_whoever_owned_it(connection: DuckDBPyConnection) -> None:
    assert len(_ask(connection, "select owner from jetton_wallets")) > 3
    question = """select jetton_wallet_workchain, jetton_wallet_id, mc_seqno, lt
        from balances_at($until) where jetton_wallet_id is not null"""
    for last in (6, 20, 1000):
        until = datetime.fromtimestamp(1_700_000_000 + last, UTC).replace(tzinfo=None)
        rows = connection.execute(question, {"until": until}).fetchall()
        assert sorted(rows) == sorted(_pick(_ask(connection, WALLETS), last))


DAYS = """
    select
        in_days(noted, $first::date, $last::date),
        in_range(noted::date, $first::date, $last::date)
    from (
        select unnest([noted, noted - interval 1 microsecond]) as noted
        from (select unnest([timestamp '2026-11-21', '2026-11-22', '2026-11-23', null]) as noted)
    )"""


@pytest.mark.parametrize("first", [None, "2026-11-21", "2026-11-22"])
@pytest.mark.parametrize("last", [None, "2026-11-20", "2026-11-21"])
def test_days_are_those_of_the_date(
    connection: DuckDBPyConnection, first: str | None, last: str | None
) -> None:
    """At midnight, and a microsecond before it."""
    found = connection.execute(DAYS, {"first": first, "last": last}).fetchall()
    assert all(by_time == by_date for by_time, by_date in found)
    assert len(found) == 8
