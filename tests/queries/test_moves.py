"""Transfers and burns from look-ups are those that the named queries give."""

from __future__ import annotations

import random
from typing import Any

import pytest

import queries.moves
from lake.lookup.opening import open_lookups
from queries.moves import COLUMNS, find_moves, read_trace_ids
from queries.reader import Reader
from tests.lake.chain import FIRST_UTIME, LT_STEP
from tests.queries.holdings import LAST, SETTINGS, Held, check_pages


def draw(rng: random.Random, held: Held, name: str) -> dict[str, Any]:
    """Return parameters of a query."""
    edges = {
        "start_utime": FIRST_UTIME + rng.randrange(LAST // 2),
        "end_utime": FIRST_UTIME + rng.randrange(LAST),
        "start_lt": rng.randrange(LAST) * LT_STEP,
        "end_lt": rng.randrange(1, LAST + 1) * LT_STEP,
    }
    parameters: dict[str, Any] = {
        "by_time": rng.random() < 0.3,
        "descending": rng.random() < 0.5,
        "limit": rng.choice((2, 100)),
        "offset": rng.choice((0, 0, 1)),
    }
    parameters |= {edge: value for edge, value in edges.items() if rng.random() < 0.2}
    if name != "jetton_burns":
        directions = rng.choice(((True, True), (True, False), (False, True)))
        parameters |= dict(zip(("outgoing", "incoming"), directions, strict=True))
    for prefix in COLUMNS[name]:
        parameters |= held.draw_accounts(rng, prefix)
    return parameters


@pytest.mark.parametrize("name", COLUMNS)
def test_pages_of_moves(held: Held, name: str) -> None:
    check_pages(held, name, draw, find_moves)


@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_too_much_is_left_to_the_query(
    held: Held, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(queries.moves, "MOST_ROWS", 1)
    snapshot = held.by_queries.snapshot
    both = Reader(snapshot, snapshot.connect(), lookups=open_lookups(snapshot, SETTINGS))
    rng = random.Random(1)  # noqa: S311 - a repeatable test
    for _ in range(4):
        parameters = draw(rng, held, name)
        wanted = held.by_queries.rows(f"v3/{name}", **parameters)
        assert find_moves(both, name, **parameters) == wanted


def test_traces_of_moves(held: Held) -> None:
    rows = held.by_queries.snapshot.connect().sql("select hash, lt from transactions").fetchall()
    moves = [{"tx_hash": tx_hash, "lt": lt} for tx_hash, lt in rows]
    wanted = read_trace_ids(held.by_queries, moves)
    assert len(wanted) > 1
    assert read_trace_ids(held.by_runs, moves) == wanted
    assert read_trace_ids(held.by_runs, []) == {}


def test_traces_of_transactions_that_the_lake_does_not_have(held: Held) -> None:
    snapshot = held.by_queries.snapshot
    both = Reader(snapshot, snapshot.connect(), lookups=open_lookups(snapshot, SETTINGS))
    assert read_trace_ids(both, [{"tx_hash": bytes(32), "lt": 0}]) == {}
