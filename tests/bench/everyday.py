"""Times the ten everyday questions by ``lake.query()`` in this process, on lakes of any network.

    python -m tests.bench.everyday LAKE ... [--rounds N] [--limit-ms MS]

The limit is one of wall time, on an otherwise idle machine; CPU is that of all threads.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import tonlake
from tests.bench.clock import sample
from tests.bench.figure import Figure, at_most, print_figures

LIMIT_MS = 100
BUDGET_S = 60
HALF_WAY = "select ton_time((min(gen_utime) + max(gen_utime)) // 2) from blocks"
Folder = click.Path(exists=True, file_okay=False, path_type=Path)


def list_questions(lake: tonlake.Lake) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return, by title, the named query that answers it and its parameters."""
    half_way = lake.sql(HALF_WAY).fetchall()[0][0]
    return {
        "active wallets": ("active_wallets", {}),
        "DEX volume by pool and day": ("dex_volume", {}),
        "holders at a date": ("jetton_holders", {"at": half_way}),
        "jetton transfers with comment": ("commented_transfers", {}),
        "NFT sales": ("nft_purchases", {}),
        "gas by contract": ("gas_by_contract", {}),
        "failures by code": ("failures", {}),
        "new contracts by code": ("new_contracts", {}),
        "whales": ("whales", {}),
        "balance history": ("balance_history", {}),
    }


def ask_questions(lake_dir: Path, name: str, *, rounds: int, limit_ms: float) -> list[Figure]:
    """Ask a lake every question; return the times with the limit."""
    lake = tonlake.open(lake_dir)
    transactions = lake.sql("select count(*) from transactions").fetchall()[0][0]
    figures = []
    for title, (query, parameters) in list_questions(lake).items():
        rows = _ask(lake, query, parameters)
        took = sample(
            partial(_ask, lake, query), [parameters] * rounds, warm_up=0, budget_s=BUDGET_S
        )
        figures.append(
            Figure(
                area=f"ten questions, {name}, {transactions:,} transactions",
                name=f"{title}, {rows:,} rows",
                unit="ms",
                value=took.median_ms,
                wall=took.median_wall_ms,
                targets={"wall": at_most(limit_ms)},
            )
        )
    return figures


def _ask(lake: tonlake.Lake, query: str, parameters: dict[str, Any]) -> int:
    return len(lake.query(query, **parameters))


@click.command()
@click.argument("lakes", nargs=-1, required=True, type=Folder)
@click.option("--limit-ms", default=LIMIT_MS, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def main(*, lakes: Sequence[Path], limit_ms: int, rounds: int) -> None:
    """Time the ten everyday questions; exit with 1 where one takes longer than its limit."""
    figures: list[Figure] = []
    for lake_dir in lakes:
        figures += ask_questions(lake_dir, str(lake_dir), rounds=rounds, limit_ms=limit_ms)
    print_figures(figures, Console(width=170))
    if not all(figure.holds for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
