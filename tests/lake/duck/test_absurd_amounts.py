"""Absurd amounts, which any token or sale can name, fail no statement."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from duckdb import DuckDBPyConnection

from tests.lake.chain import commit_made
from tests.lake.duck.test_nft_events import BUYER, CONTRACT, OWNER, make_row, move, sale
from tests.lake.duck.test_prices import CAT, master, swap
from tests.lake.opened import open_views
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import TABLES
from tonlake.queries.reader import Reader

MANY, MOST = 300, (1 << 120) - 1
"""The largest VarUInteger 16; a sum of 128 of them has more than 38 digits."""

Row = tuple[str, dict[str, Any]]


def list_rows() -> Iterator[Row]:
    yield "jetton_masters", master(CAT, 0)
    yield make_row("transactions")
    place = {"jetton": bytes.fromhex(CAT[2:]), "jetton_workchain": 0, "aborted": False}
    for number in range(MANY):
        key = {"lt": number, "trace_id": bytes(32), "action_id": number.to_bytes(32, "big")}
        amounts = {"amount": MOST >> number % 50, "forward_ton_amount": MOST >> number % 50}
        yield make_row("jetton_transfers", tx_hash=bytes(32), **key, **place, **amounts)
        yield "dex_swaps", swap(number, number, MOST if number % 2 else 10**10, MOST)
        minted = json.dumps({"staking_data": {"tokens_minted": str(MOST)}})
        stake = {"type": "stake_deposit", "asset": CAT, "asset2": None, "amount": MOST}
        yield make_row("actions", details=minted, **key, **stake)
    shares = {"mp_fee_factor": 1 << 62, "mp_fee_base": 1, "royalty_amount": str(1 << 255)}
    for price in (1 << 255, MOST, 10**20 - 1):
        yield sale(full_price=str(price), is_complete=True, **shares)
    yield move(OWNER, CONTRACT, 5)
    yield move(CONTRACT, BUYER, 6)
    for _ in range(MANY):
        yield make_row("nft_sales_events", event="nft_purchase", price=MOST)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DuckDBPyConnection, Reader]]:
    folder = tmp_path_factory.mktemp("absurd")
    rows: dict[str, list[dict[str, Any]]] = {}
    for table, row in list_rows():
        rows.setdefault(table, []).append(row)
    tables = {
        name: pa.Table.from_pylist(each, schema=TABLES[name].arrow) for name, each in rows.items()
    }
    commit_made(folder, 1, 2, tables, day="2023-11-14")
    snapshot = open_snapshot(folder)
    with closing(connect(snapshot)) as connection:
        yield connection, Reader(snapshot, open_views(snapshot))


@pytest.mark.parametrize(
    "question",
    [
        "select sum(amount), sum(forward_amount), sum(value_ton) from v_jetton_transfers",
        "select sum(amount), sum(value_ton) from v_transfers",
        "select sum(amount_in), sum(amount_out), sum(value_ton), sum(value_usd) from v_swaps",
        "select sum(price), sum(royalty), sum(marketplace_fee) from v_nft_events",
        "select sum(price_units) from v_nft_sales",
        "select sum(swap_volume_ton) from v_daily",
        "from prices_daily",
        "from v_jettons",
    ],
)
def test_views(lake: tuple[DuckDBPyConnection, Reader], question: str) -> None:
    assert lake[0].execute(question).fetchall()


@pytest.mark.parametrize("name", ["top_jettons", "dex_volume", "nft_volume", "nft_floor"])
def test_named_queries(lake: tuple[DuckDBPyConnection, Reader], name: str) -> None:
    lake[1].table(f"everyday/{name}")


def test_units_are_kept(lake: tuple[DuckDBPyConnection, Reader]) -> None:
    kept = lake[0].execute("select max(amount_units), max(amount) from v_jetton_transfers")
    ((units, amount),) = kept.fetchall()
    assert (units, amount) == (MOST, max(MOST >> by for by in range(50) if MOST >> by < 10**22))
