"""Hourly prices equal those computed by hand, and one absurd trade changes nothing."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pytest
from duckdb import DuckDBPyConnection

from tests.lake.chain import commit_made
from tests.lake.rows import make_table
from tonlake.ingest.command.action import read_traces
from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.model import Message, Transaction
from tonlake.ingest.derive.action.row import Values, list_rows, make_tables
from tonlake.ingest.derive.body.body import decode_message_body
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings

HOUR = 1_700_000_000 // 3600 * 3600
CAT = "0:" + "CA" * 32
DOLLAR = "0:" + "D0" * 32
WRAPPED = "0:8CDC1D7640AD5EE326527FC1AD0514F468B30DC84B0173F0E155F451B4E11F7C"
POOL, OTHER_POOL, THIN_POOL = ("0:" + digit * 64 for digit in "123")
SETTINGS = LakeSettings(stablecoins=DOLLAR)

Row = dict[str, Any]


def swap(number: int, second: int, nano: int | None, units: int, **changes: object) -> Row:
    """Return a swap of TON for a jetton."""
    swapped: Row = {
        "trace_id": bytes(32),
        "action_id": number.to_bytes(32, "big"),
        "mc_seqno": 1,
        "end_lt": 1000 + number,
        "end_utime": HOUR + second,
        "success": True,
        "dex": "stonfi",
        "sender": "0:" + "5E" * 32,
        "pool": POOL,
        "asset_in": None,
        "amount_in": nano,
        "asset_out": CAT,
        "amount_out": units,
        "hops": 1,
    }
    return swapped | changes


def sell(number: int, second: int, nano: int, units: int, **changes: object) -> Row:
    """Return a swap of a jetton for TON."""
    turned = {"asset_in": CAT, "amount_in": units, "asset_out": None, "amount_out": nano}
    return swap(number, second, nano, units, **(turned | changes))


def master(address: str, decimals: int) -> Row:
    """Return the state of a jetton master."""
    return {
        "workchain": 0,
        "account": bytes.fromhex(address[2:]),
        "mc_seqno": 1,
        "lt": 1,
        "utime": HOUR,
        "total_supply": 10**15,
        "mintable": True,
        "content": json.dumps({"symbol": "CAT", "decimals": str(decimals)}),
        "wallet_code_hash": bytes(32),
    }


PRICED = "from dex_prices, ton_prices, prices_daily, v_swaps"
"""Views of prices, without which a database is made faster."""


def open_lake(
    folder: Path,
    swaps: list[Row],
    jettons: Sequence[str] = (CAT, DOLLAR),
    actions: Sequence[Row] = (),
) -> DuckDBPyConnection:
    """Commit swaps of jettons with six decimals, and return a connection."""
    masters = [master(jetton, 6) for jetton in jettons]
    rows = {"dex_swaps": swaps, "jetton_masters": masters, "actions": [*actions]}
    tables = {
        name: pa.Table.from_pylist(each, schema=TABLES[name].arrow) for name, each in rows.items()
    }
    commit_made(folder, 1, 2, tables, day="2023-11-14")
    return connect(open_snapshot(folder), SETTINGS, statement=PRICED)


def trade(prices: list[float], first: int = 0, **changes: object) -> list[Row]:
    """Return swaps of 10 TON each, one minute apart, at the given prices in TON for one CAT."""
    return [
        swap(first + at, 60 * at, 10**10, round(10 / price * 1e6), **changes)
        for at, price in enumerate(prices)
    ]


PRICES = [0.5, 0.52, 0.47, 0.51, 0.49]
HOURS = "select open, high, low, close, volume_ton, trades, pools from dex_prices"


def test_an_hour_by_hand(tmp_path: Path) -> None:
    lake = open_lake(tmp_path, trade(PRICES))
    ((*prices, volume, trades, pools),) = lake.execute(HOURS).fetchall()
    assert prices == pytest.approx([0.5, 0.52, 0.47, 0.49], rel=1e-6)
    assert (volume, trades, pools) == (50, 5, 1)
    bought = lake.execute("select volume from dex_prices").fetchall()[0][0]
    assert bought == pytest.approx(sum(10 / price for price in PRICES), rel=1e-6)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    lake = open_lake(tmp_path_factory.mktemp("sound"), trade(PRICES))
    return lake.execute("from dex_prices").fetchall()


@pytest.mark.parametrize(
    "absurd",
    [
        pytest.param([swap(90, 120, 10**15, 1)], id="an established pool, a million TON for dust"),
        pytest.param([sell(90, 120, 10**8, 10**15)], id="jettons thrown away"),
        pytest.param([swap(90, 120, 10**15, 1, pool=THIN_POOL)], id="a pool of one trade"),
        pytest.param([swap(90, 3599, 10**15, 1)], id="the last trade of the hour"),
        pytest.param([swap(90, 10, 1, 10**9)], id="dust"),
        pytest.param([swap(90, 10, 10**12, 1, success=False)], id="a failed swap"),
        pytest.param([swap(90, 10, 10**12, 1, hops=2)], id="two pools"),
        pytest.param([swap(90, 10, None, 1)], id="an unknown amount"),
    ],
)
def test_an_absurd_trade_changes_nothing(
    tmp_path: Path, sound: list[Any], absurd: list[Row]
) -> None:
    shaken = open_lake(tmp_path, [*trade(PRICES), *absurd])
    assert shaken.execute("from dex_prices").fetchall() == sound


def test_pools_directions_and_wrapped_ton_count_alike(tmp_path: Path) -> None:
    bought = trade(PRICES)
    sold = [sell(10 + at, 30, 10**10, 20_000_000, pool=OTHER_POOL) for at in range(3)]
    wrapped = [swap(20, 40, 10**10, 20_000_000, asset_in=WRAPPED, pool=OTHER_POOL)]
    lake = open_lake(tmp_path, bought + sold + wrapped)
    ((*prices, volume, trades, pools),) = lake.execute(HOURS).fetchall()
    assert prices == pytest.approx([0.5, 0.52, 0.47, 0.5], rel=1e-6)
    assert (volume, trades, pools) == (90, 9, 2)


def test_a_true_move_is_followed(tmp_path: Path) -> None:
    """A price that stays at three times the former one counts: the median moves with it."""
    lake = open_lake(tmp_path, trade([0.5] * 30 + [1.5] * 30))
    found = lake.execute("select open, close, trades from dex_prices").fetchall()
    assert found == [(pytest.approx(0.5), pytest.approx(1.5, rel=1e-6), 60)]


def test_values_in_ton_and_dollars(tmp_path: Path) -> None:
    dollars = [
        swap(50 + at, 60 * at, 10**10, units, asset_out=DOLLAR)
        for at, units in enumerate([30_000_000, 31_000_000, 29_000_000])
    ]
    apart = swap(70, 1800, 4_000_000, 2_000_000, asset_in=CAT, asset_out=DOLLAR, pool=OTHER_POOL)
    late = apart | {"action_id": b"x" * 32, "end_lt": 9000, "end_utime": HOUR + 26 * 3600}
    lake = open_lake(tmp_path, [*trade(PRICES), *dollars, apart, late])
    assert lake.execute("select usd from ton_prices").fetchall() == [(pytest.approx(2.9),)]
    worth = "select close_usd from dex_prices where address = $1"
    assert lake.execute(worth, [CAT]).fetchall() == [(pytest.approx(0.49 * 2.9, rel=1e-6),)]
    values = lake.execute(
        "select symbol_in, amount_in, value_ton from v_swaps where asset_in is not null order by lt"
    ).fetchall()
    assert values[0][:2] == ("CAT", 4)
    assert float(values[0][2]) == pytest.approx(4 * 0.49, rel=1e-6)
    assert values[1][2] is None
    ton = "select sum(value_ton) from v_swaps where asset_in is null"
    assert lake.execute(ton).fetchall() == [(80,)]
    usd = lake.execute("select value_usd / value_ton from v_swaps where lt < 9000").fetchall()
    assert usd == [(pytest.approx(2.9),)] * 9


def test_prices_of_a_day(tmp_path: Path) -> None:
    staked, made = "0:" + "57" * 32, make_table("actions", 1, 1, rows=1).to_pylist()[0]
    paid = [(staked, 20, 9_000_000, True), (staked, 40, 19_000_000, True), (staked, 1, 1, True)]
    paid += [(staked, 99, 1, False), (CAT, 20, 1, True)]
    deposits = [
        made
        | {"type": "stake_deposit", "success": success, "asset": asset, "asset2": None}
        | {"amount": ton * 10**9 // 2, "action_id": bytes([at]) * 32, "end_utime": HOUR}
        | {"details": json.dumps({"staking_data": {"tokens_minted": tokens}})}
        for at, (asset, ton, tokens, success) in enumerate(paid)
    ]
    later = [swap(40 + at, 3600 + at, 10**10, 40_000_000) for at in range(3)]
    lake = open_lake(tmp_path, trade(PRICES) + later, (CAT, DOLLAR, staked), deposits)
    question = "select asset, price_ton, trades, source from prices_daily order by source"
    assert lake.execute(question).fetchall() == [
        (staked, pytest.approx(30 / 28), 2, "staking"),
        (CAT, pytest.approx(0.25, rel=1e-6), 8, "swaps"),
    ]
    dollars = trade([1 / 3] * 3, first=60, asset_out=DOLLAR)
    lake = open_lake(tmp_path / "paid", trade(PRICES) + dollars)
    question = (
        "select asset, price_usd from prices_daily where asset is distinct from $1 order by 2"
    )
    found = lake.execute(question, [DOLLAR]).fetchall()
    assert found == [(CAT, pytest.approx(3 * 0.49)), (None, pytest.approx(3))]


def test_the_median_is_of_the_trades_around(tmp_path: Path) -> None:
    """The documented method, written in Python, keeps the same trades of a volatile market."""
    prices = [0.1 * (1 + at * 7919 % 97) for at in range(60)]
    kept = [
        price
        for at, price in enumerate(prices)
        if (middle := median(prices[max(0, at - 10) : at + 11])) / 2 <= price <= middle * 2
    ]
    lake = open_lake(tmp_path, trade(prices))
    found = lake.execute("select open, high, low, close, trades from dex_prices").fetchall()
    expected = [kept[0], max(kept), min(kept), kept[-1], len(kept)]
    assert 10 < len(kept) < 60
    assert list(found[0]) == pytest.approx(expected, rel=1e-5)


@pytest.fixture(scope="module")
def recorded(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of traces recorded on the main network, with swaps and sales in them."""
    lake = tmp_path_factory.mktemp("recorded")
    rows, own = list[Values](), defaultdict[str, list[Row]](list)
    for _key, trace, interfaces in read_traces(shared / "data/classifier/traces.jsonl.zst"):
        rows += list_rows(trace, classify(trace, interfaces).actions)
        for each in trace.transactions:
            if each.in_msg is not None and each.in_msg.boc is not None:
                for table, row in read_message(each, each.in_msg, each.in_msg.boc):
                    own[table].append(row | {"trace_id": trace.trace_id})
    tables = {name: pa.Table.from_pylist(own[name], schema=TABLES[name].arrow) for name in own}
    commit_made(lake, 1, 10**8, make_tables(rows) | tables, day="2023-11-14")
    return lake


def read_message(each: Transaction, message: Message, boc: bytes) -> Iterator[tuple[str, Row]]:
    """Yield what a lake has of a message that an account received."""
    own = {"hash": each.tx_hash, "tx_hash": each.tx_hash, "lt": each.lt, "tx_lt": each.lt}
    own |= {"body_hash": message.msg_hash, "destination": bytes.fromhex(each.account[-64:])}
    own |= {"opcode": message.opcode and message.opcode - (message.opcode >> 31 << 32)}
    own |= {"decoded": decode_message_body(boc, external_in=False).json}
    own |= {"direction": "in", "kind": "int", "destination_workchain": 0}
    for name in ("messages", "message_bodies", "transaction_traces"):
        yield name, make_table(name, 1, 1, rows=1).to_pylist()[0] | own | {"external_in": False}


FIRST_ORDERS = {
    ("stonfi", "0:BF3B15", 983077717596, "0:C21FAB"),
    ("stonfi", "0:FC4C9F", 13658901944366272709, None),
    ("stonfi_v2", "0:5BB0C8", 275159749889, "0:9BA0BD"),
    ("dedust", "0:A1D92F", 16905987723035969, None),
    ("tonco", "0:D79117", 236023288, None),
    ("coffee", "0:C44CF0", 16905987724385697, "0:99FE95"),
}
"""Pool, query id and referral of some of the recorded swaps, read from the messages' cells."""


def test_recorded_swaps_and_sales(recorded: Path) -> None:
    lake = connect(open_snapshot(recorded))
    swaps = lake.view("dex_swaps").to_arrow_table().to_pylist()
    expected = {}
    for row in swaps:
        sides = ((row["asset_in"], row["amount_in"]), (row["asset_out"], row["amount_out"]))
        nano = next((amount for asset, amount in sides if asset in {None, WRAPPED}), None)
        expected[row["action_id"]] = None if nano is None else nano / 10**9
    found = lake.execute("select action_id, value_ton from v_swaps").fetchall()
    assert {key: None if value is None else float(value) for key, value in found} == {
        key: None if value is None else pytest.approx(float(value))
        for key, value in expected.items()
    }
    assert len(expected) > 10
    orders = lake.execute("select dex, pool, query_id, referral, tx_hash from v_swaps").fetchall()
    assert len({tx_hash for *_, tx_hash in orders if tx_hash}) == len(swaps)
    shown = {(dex, pool[:8], query_id, who and who[:8]) for dex, pool, query_id, who, _ in orders}
    assert shown >= FIRST_ORDERS
    sales = lake.execute("select price, marketplace from v_nft_sales order by time").fetchall()
    assert sales == [(Decimal("1.35"), "getgems"), (103, "getgems")]
