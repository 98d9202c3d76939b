"""Pages of ranges: the index gives the same as SQL, for any filters, order and page."""

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import tonlake
from tests.lake.opened import open_views
from tests.queries.asking import Answered, ask_both
from tonlake.lake.duck.connection import connect
from tonlake.lake.index.index import open_index
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings
from tonlake.queries.reader import Reader

DRAWS = 50
"""Pages of each list; `test_combinations` draws thousands over a larger network."""
OF_ACTIONS = {"v3/actions", "v3/action_keys_of_account"}
OF_ACCOUNT = {"v3/traces_of_account", "v3/action_keys_of_account"}
PAGED = {"v3/traces"} | OF_ACTIONS | OF_ACCOUNT
MOVES = {
    "v3/jetton_transfers": ("jetton", "owner"),
    "v3/jetton_burns": ("jetton", "owner"),
    "v3/nft_transfers": ("collection", "owner"),
}
"""Transfers and burns, and what they are asked by besides their account."""

KEYS = {
    "v3/transaction_keys": ("hash", "lt"),
    "v3/traces": ("trace_id", "end_lt", "end_utime", "state", "transactions", "pending_messages"),
    "v3/traces_of_account": ("trace_id", "end_lt", "end_utime", "state", "transactions"),
    "v3/action_keys_of_account": ("trace_id", "action_id", "trace_end_lt", "mc_seqno"),
    "v3/actions": ("trace_id", "action_id", "type", "end_lt", "details", "tx_hashes"),
    **dict.fromkeys(MOVES, ("workchain", "account", "lt", "now", "tx_hash")),
    "v3/blocks": ("workchain", "shard", "seqno", "root_hash", "gen_utime", "tx_count"),
}
LISTS = {
    "v3/transaction_keys": ("hashes", "excluded_workchains", "excluded_accounts"),
    "v3/action_keys_of_account": ("types", "excluded", "hidden_under"),
    "v3/actions": ("trace_ids", "action_ids", "tx_hashes", "types", "excluded", "hidden_under"),
}


def draw(rng: Random, name: str, moments: list[tuple[int, int, int]]) -> dict[str, Any]:
    """Return filters by time and logical time, most of them none, and a page."""
    found: dict[str, Any] = {
        "descending": rng.random() < 0.5,
        "limit": rng.choice((1, 3, 10, 100, 1000)),
        "offset": rng.choice((0, 0, 0, 7, 500)),
    }
    if name == "v3/blocks":
        if rng.random() < 0.5:
            found["workchain"] = rng.choice((0, -1))
    else:
        found["by_time"] = rng.random() < 0.5
        found |= {key: [] for key in LISTS.get(name, ())}
    if name == "v3/traces" and rng.random() < 0.3:
        return found | {"mc_seqno": rng.choice(moments)[2]}
    if name in PAGED and rng.random() < 0.3:
        end = rng.choice(moments)[0 if found["by_time"] else 1]
        found |= {"after_end": end, "after_id": rng.randbytes(32)}
        if name in OF_ACTIONS:
            found |= {"after_trace": rng.randbytes(32), "after_action": end}
    if name in OF_ACTIONS and rng.random() < 0.5:
        found[rng.choice(("types", "excluded", "hidden_under"))] = ["ton_transfer"]
    for at, unit, width in ((0, "utime", 30), (1, "lt", 20_000_000)):
        first = rng.choice(moments)[at] + rng.choice((0, 0, 1, -1))
        last = rng.choice((first, first + width, rng.choice(moments)[at]))
        if rng.random() < 0.5:
            found[f"start_{unit}"] = first
        if rng.random() < 0.5:
            found[f"end_{unit}"] = last
    return found


def list_moves(connection: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    """Return the addresses in each transfer or burn, by the name of their filter."""
    ends = {"v3/jetton_transfers": "destination", "v3/jetton_burns": "owner"}
    owner, other = ends.get(name, "new_owner"), MOVES[name][0]
    columns = {"account": "account", other: other, "owner": owner}
    shown = ", ".join(f"{column} as {label}" for label, column in columns.items())
    found = connection.execute(f"select {shown} from {name.removeprefix('v3/')}")  # noqa: S608
    names = [column for column, *_ in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def draw_addresses(rng: Random, name: str, moves: list[dict[str, Any]]) -> dict[str, Any]:
    """Return filters by addresses, most of them none."""
    found: dict[str, Any] = {}
    like = rng.choice(moves)
    for label in ("account", *MOVES[name]):
        addresses = [like[label]] if rng.random() < 0.3 and like[label] is not None else []
        found |= {f"{label}s": addresses, f"{label}_workchains": [0] * len(addresses)}
    found["workchains"] = found.pop("account_workchains")
    if name != "v3/jetton_burns":
        found |= {"outgoing": rng.random() < 0.8, "incoming": rng.random() < 0.8}
    return found


@cache
def open_once(lake_dir: Path) -> tuple[duckdb.DuckDBPyConnection, Reader, Reader]:
    """Return a lake that does not change: its views, and readers with and without its index."""
    snapshot = open_snapshot(lake_dir)
    connection = connect(snapshot)
    views = open_views(snapshot)
    indexed = Reader(snapshot, views, index=open_index(snapshot, LakeSettings()))
    return connection, indexed, Reader(snapshot, views)


def compare_pages(lake_dir: Path, name: str, draws: int) -> list[Answered]:
    """Read pages through the reader and from SQL alone, and compare them."""
    connection, indexed, plain = open_once(lake_dir)
    moments = connection.execute("select now, lt, mc_seqno from transactions").fetchall()
    accounts = connection.execute("select workchain, account from transactions").fetchall()
    moves = list_moves(connection, name) if name in MOVES else []
    rng = Random(name)  # noqa: S311 - a repeatable test
    answers = []
    for _ in range(draws):
        parameters = draw(rng, name, moments)
        if name in OF_ACCOUNT:
            parameters |= dict(zip(("workchain", "account"), rng.choice(accounts), strict=True))
        if name == "v3/actions" and rng.random() < 0.2:
            workchain, account = rng.choice(accounts)
            parameters["account"] = f"{workchain}:{account.hex().upper()}"
        if name in MOVES:
            parameters |= draw_addresses(rng, name, moves)
        answers.append(ask_both(indexed, plain, name, parameters, KEYS[name]))
    return answers


@pytest.mark.parametrize("name", sorted(KEYS))
def test_pages_of_spans(demo_lake: Path, name: str) -> None:
    answers = compare_pages(demo_lake, name, DRAWS)
    assert sum(each.by_index for each in answers) > DRAWS * 0.9
    assert sum(each.filled for each in answers) > DRAWS / (8 if name in MOVES else 5)


@pytest.mark.parametrize("name", sorted(KEYS))
def test_pages_of_spans_with_shared_seconds(newest_lake: Path, name: str) -> None:
    answers = compare_pages(newest_lake, name, DRAWS // 4)
    assert sum(each.by_index for each in answers) > DRAWS * 3 // 16


def test_a_get_method_history_uses_the_last_block_of_a_second(newest_lake: Path) -> None:
    lake = tonlake.open(newest_lake)
    ((wallet,),) = lake.sql(
        "select ton_address(workchain, account) from wallets order by account limit 1"
    ).fetchall()
    found = lake.account(wallet).history("seqno", every="1 second").arrow()
    rows = lake.sql(
        "select make_timestamp(gen_utime * 1000000) as time, max(seqno), count(*) "
        "from blocks where workchain = -1 group by all"
    ).fetchall()
    last = {time: seqno for time, seqno, _count in rows}
    assert max(count for *_, count in rows) > 1
    pairs = list(zip(found["time"].to_pylist(), found["mc_seqno"].to_pylist(), strict=True))
    assert len(pairs) > 100
    assert [seqno for time, seqno in pairs if time in last] == [
        last[time] for time, _seqno in pairs if time in last
    ]
