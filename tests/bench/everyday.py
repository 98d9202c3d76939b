"""Times the ten everyday questions by ``lake.query()``, on a recorded and a synthetic network.

    python -m tests.bench.everyday [--transactions N] [--rounds N] [--scratch FOLDER]
    python -m tests.bench.everyday --lake LAKE ... [--limit-ms MS]

Nodes are written, ingested by ``tonlake ingest`` with everything on, and queried in this process.
The limits apply to the median wall time, which is meaningful only on an otherwise idle machine; CPU
is that of all threads. A first round, which opens files, is not counted.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

import tonlake
from tests.bench.blocks import NETWORK_NODE, unpack_node
from tests.bench.chain import NETWORK, Chain, ChainWriter, Moulds
from tests.bench.clock import sample
from tests.bench.figure import Figure, at_most, print_figures
from tests.bench.process import run_ingest

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDED_LIMIT_MS, LIMIT_MS = 100, 1000
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


def measure_recorded(scratch: Path, rounds: int) -> list[Figure]:
    """Ingest the recorded network and query it; return nothing where it is not available."""
    if not NETWORK_NODE.exists():
        return []
    node, lake_dir = unpack_node(NETWORK_NODE, scratch / "recorded"), scratch / "lake-recorded"
    run_ingest(node, lake_dir)
    return ask_questions(lake_dir, "recorded", rounds=rounds, limit_ms=RECORDED_LIMIT_MS)


def measure_made(scratch: Path, transactions: int, workers: int, rounds: int) -> list[Figure]:
    """Write a network of at least that size, ingest it and query it."""
    node, lake_dir, done = scratch / "node", scratch / "lake", 0
    with closing(ChainWriter(node, Chain(Moulds(scratch), NETWORK))) as writer:
        while done < transactions:
            done += writer.append()
    run_ingest(node, lake_dir, workers=workers)
    shutil.rmtree(node)
    return ask_questions(lake_dir, "made", rounds=rounds, limit_ms=LIMIT_MS)


@click.command()
@click.option(
    "--lake", "lakes", multiple=True, type=Folder, help="Query only this lake; read-only."
)
@click.option("--limit-ms", default=LIMIT_MS, show_default=True, help="Limit for such a lake.")
@click.option(
    "--transactions",
    default=200_000,
    show_default=True,
    help="Transactions of the synthetic network.",
)
@click.option("--workers", default=2, show_default=True, help="Workers of its ingest.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--scratch", type=Folder, help="Folder for temporary files.")
def main(
    *,
    lakes: Sequence[Path],
    limit_ms: int,
    transactions: int,
    workers: int,
    rounds: int,
    scratch: Path | None,
) -> None:
    """Time the ten everyday questions; exit with 1 where one takes longer than its limit."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    figures: list[Figure] = []
    for lake_dir in lakes:
        figures += ask_questions(lake_dir, str(lake_dir), rounds=rounds, limit_ms=limit_ms)
    if not lakes:
        with tempfile.TemporaryDirectory(prefix="tonlake-bench-", dir=scratch) as name:
            figures += measure_recorded(Path(name), rounds)
            figures += measure_made(Path(name), transactions, workers, rounds)
    print_figures(figures, Console(width=170))
    if not all(figure.holds for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
