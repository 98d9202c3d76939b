"""Contracts from look-ups are those that the named queries give."""

from __future__ import annotations

import random
from typing import Any

import pytest

import queries.contracts
from lake.lookup.opening import open_lookups
from queries.contracts import COLUMNS, find_contracts, read_newest
from queries.errors import ParameterMismatch
from queries.reader import Reader
from tests.queries.holdings import LAST, SETTINGS, Held, check_pages

FLAGS = {
    "jetton_wallets": ("exclude_zero", "by_account", "by_owner", "by_balance", "descending"),
    "nft_items": ("include_on_sale", "by_lt", "by_owner", "by_collection", "by_first"),
}


def draw(rng: random.Random, held: Held, name: str) -> dict[str, Any]:
    """Return parameters of a query."""
    parameters: dict[str, Any] = {
        "mc_seqno": rng.choice((None, None, 1, LAST - 3, LAST)),
        "limit": rng.choice((2, 100)),
        "offset": rng.choice((0, 0, 1)),
    }
    parameters |= {flag: rng.random() < 0.5 for flag in FLAGS.get(name, ())}
    if name == "nft_items":
        parameters["indexes"] = rng.choice(([], [], ["1", "2", "10", "11"]))
    for column in COLUMNS[name]:
        parameters |= held.draw_accounts(rng, column)
    return parameters


@pytest.mark.parametrize("name", COLUMNS)
def test_pages_of_contracts(held: Held, name: str) -> None:
    check_pages(held, name, draw, find_contracts)


@pytest.mark.parametrize("table", ["wallets", "masters", "collections", "items"])
def test_newest_rows(held: Held, table: str) -> None:
    name = f"{'jetton' if table in {'wallets', 'masters'} else 'nft'}_{table}"
    accounts = [*held.accounts, (0, bytes(32))]
    found = read_newest(held.by_runs, name, f"v3/token_{table}", accounts)
    wanted = read_newest(held.by_queries, name, f"v3/token_{table}", accounts)
    assert len(wanted) > 1
    assert [{column: row[column] for column in wanted[0]} for row in found] == wanted
    assert read_newest(held.by_runs, name, f"v3/token_{table}", []) == []


def test_what_is_too_much_is_left_to_the_query(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries.contracts, "MOST_ROWS", 1)
    both = Reader(
        held.by_queries.snapshot,
        held.by_queries.snapshot.connect(),
        lookups=open_lookups(held.by_queries.snapshot, SETTINGS),
    )
    rng = random.Random(1)  # noqa: S311 - a repeatable test
    for name in COLUMNS:
        parameters = draw(rng, held, name)
        assert find_contracts(both, name, **parameters) == held.by_queries.rows(
            f"v3/{name}", **parameters
        )


def test_parameters_are_those_of_the_query(held: Held) -> None:
    with pytest.raises(ParameterMismatch, match="limit"):
        find_contracts(held.by_runs, "nft_sales", workchains=[], accounts=[])
