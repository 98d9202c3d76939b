"""``tonlake ingest`` with everything on: the cost of a transaction, alone and by several workers.

    python -m tests.bench.everything [--node FOLDER ...] [--transactions N] [--rounds N]

The unit is the CPU that PostgreSQL takes to copy and index the same rows with the service's
indexes, in the same round. Costs are marginal: the same command for the newest block alone, which
is mostly imports, is taken off. With several rounds every figure is a median.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import click
from rich.console import Console

from tests.bench.chain import LARGE, Chain, ChainWriter, Moulds
from tests.bench.figure import Figure, at_least, at_most, print_figures
from tests.bench.peer.store import load_peer
from tests.bench.postgres import find_server, running_server
from tests.bench.process import run_ingest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.bench.process import Used

AREA = "tonlake ingest, index included"
ROWS_ONLY = {
    "TONLAKE_INGEST_DETECT_CONTRACTS": "0",
    "TONLAKE_INGEST_CLASSIFY_ACTIONS": "0",
    "TONLAKE_LAKE_BUILD_INDEX": "0",
}
COUNTS = (1, 2, 4)
MANY_CORES = (16, 32, 64)
UNITS, ROWS_UNITS, TWO_TO_ONE, SERIAL_PERCENT = 2.0, 0.35, 1.7, 3
MEMORY_MIB, MEMORY_OF_WORKER_MIB = 1024, 400
US_PER_S = 1e6


class Cost(NamedTuple):
    """One ingest, less its start: microseconds a transaction, seconds, and peaks of memory."""

    cpu_us: float
    main_us: float
    wall_us: float
    start_s: float
    used: Used

    @property
    def worker_mib(self) -> float:
        """Peak memory of the largest process beside the one that commits."""
        return max(self.used.others_mib, default=0.0)


class Round(NamedTuple):
    """All costs of one chain, taken one after the other; ``peer_us`` is the unit."""

    everything: dict[int, Cost]
    rows: Cost
    peer_us: float | None


def measure_everything(
    scratch: Path,
    name: str,
    node: Path,
    *,
    counts: Sequence[int] = COUNTS,
    rounds: int = 1,
    peer: bool = True,
) -> list[Figure]:
    """Ingest a node's folder by each number of workers; return costs, units, shares, memory."""
    done = [_go_round(scratch, node, counts, peer=peer) for _ in range(rounds)]
    transactions = done[0].rows.used.transactions
    area = f"{AREA}: {name}, {transactions:,} transactions"
    figures = _describe_costs(area, done)
    for count in counts[1:]:
        figures += _describe_workers(area, counts[0], count, done)
    if len(counts) > 1:
        figures += _describe_bound(area, [one.everything[counts[-1]] for one in done])
    return figures


def _go_round(scratch: Path, node: Path, counts: Sequence[int], *, peer: bool) -> Round:
    lake = scratch / "lake-everything"
    everything, peer_us = {}, None
    for count in counts:
        everything[count] = cost = _measure(scratch, node, lake, count)
        if count == counts[0] and peer and find_server():
            with running_server(scratch) as address:
                loaded = load_peer(address, lake, scratch)
            seconds = loaded["copy_s"] + loaded["indexes_s"]
            peer_us = seconds / cost.used.transactions * US_PER_S
        shutil.rmtree(lake)
    rows = _measure(scratch, node, lake, counts[0], ROWS_ONLY)
    shutil.rmtree(lake)
    return Round(everything, rows, peer_us)


def _measure(
    scratch: Path, node: Path, lake: Path, workers: int, settings: Mapping[str, str] | None = None
) -> Cost:
    """Ingest all blocks, and the newest alone; leave the lake of all."""
    other = scratch / "lake-of-one"
    used = run_ingest(node, lake, workers=workers, settings=settings)
    one = run_ingest(node, other, workers=workers, span="-1:", settings=settings)
    shutil.rmtree(other)
    more = (used.transactions - one.transactions) / US_PER_S
    return Cost(
        cpu_us=(used.cpu_s - one.cpu_s) / more,
        main_us=(used.main_s - one.main_s) / more,
        wall_us=(used.wall_s - one.wall_s) / more,
        start_s=one.cpu_s,
        used=used,
    )


def _describe_costs(area: str, rounds: Sequence[Round]) -> list[Figure]:
    """Return what one worker takes for a transaction, with everything and for rows alone."""
    units = [one.peer_us for one in rounds if one.peer_us is not None]
    first = min(rounds[0].everything)
    figures = []
    for name, costs, most in (
        ("everything", [one.everything[first] for one in rounds], UNITS),
        ("rows and traces", [one.rows for one in rounds], ROWS_UNITS),
    ):
        start_s = median(cost.start_s for cost in costs)
        figures.append(
            Figure(
                area=area,
                name=f"{name}, one process",
                unit="us/tx",
                value=median(cost.cpu_us for cost in costs),
                wall=median(cost.wall_us for cost in costs),
                peer=median(units) if units else None,
                note=f"and {start_s:.1f} s once, to start; {costs[0].used.main_mib:,.0f} MiB; "
                + ("peer: copied and indexed" if units else "no PostgreSQL, so no units"),
            )
        )
        if units:
            ratios = [cost.cpu_us / unit for cost, unit in zip(costs, units, strict=True)]
            figures.append(
                Figure(
                    area=area,
                    name=f"{name}, to PostgreSQL's time for the same rows",
                    unit="units",
                    value=median(ratios),
                    targets={"value": at_most(most)},
                    note=", ".join(f"{ratio:.2f}" for ratio in ratios) if len(ratios) > 1 else "",
                )
            )
    return figures


def _describe_workers(area: str, first: int, count: int, rounds: Sequence[Round]) -> list[Figure]:
    """Return what several workers take, to one, and the memory of each process."""
    costs = [one.everything[count] for one in rounds]
    faster = [one.everything[first].wall_us / one.everything[count].wall_us for one in rounds]
    main_mib = max(cost.used.main_mib for cost in costs)
    return [
        Figure(
            area=area,
            name=f"everything, {count} workers",
            unit="us/tx",
            value=median(cost.cpu_us for cost in costs),
            wall=median(cost.wall_us for cost in costs),
            note="CPU of all processes",
        ),
        Figure(
            area=area,
            name=f"throughput by the clock, {count} workers to one process",
            unit="x",
            value=median(faster),
            targets={"value": at_least(TWO_TO_ONE)} if count == COUNTS[1] else {},
        ),
        Figure(
            area=area,
            name=f"peak memory, {count} workers: the one that commits",
            unit="MiB",
            value=main_mib,
            targets={"value": at_most(MEMORY_MIB)},
        ),
        Figure(
            area=area,
            name=f"peak memory, {count} workers: the largest worker",
            unit="MiB",
            value=max(cost.worker_mib for cost in costs),
            targets={"value": at_most(MEMORY_OF_WORKER_MIB)},
        ),
    ]


def _describe_bound(area: str, costs: Sequence[Cost]) -> list[Figure]:
    """Return the share of the process that commits, and the throughput that it allows."""
    serial_us = median(cost.main_us for cost in costs)
    spread_us = median(cost.cpu_us for cost in costs) - serial_us
    figures = [
        Figure(
            area=area,
            name="serial share: CPU of the process that commits",
            unit="%",
            value=100 * serial_us / (serial_us + spread_us),
            targets={"value": at_most(SERIAL_PERCENT)},
            note=f"{serial_us:.1f} us/tx; once all is spread, at most "
            f"{US_PER_S / serial_us:,.0f} tx/s on any number of cores",
        )
    ]
    return figures + [
        Figure(
            area=area,
            name=f"throughput that this share allows, {cores} cores",
            unit="tx/s",
            value=US_PER_S / (serial_us + spread_us / cores),
            note="computed (Amdahl) from the CPU times above, as if nothing overlapped",
        )
        for cores in MANY_CORES
    ]


def make_chain(scratch: Path, transactions: int) -> Path:
    """Write a node's folder of large blocks, with at least so many transactions."""
    node, done = scratch / "node-everything", 0
    with closing(ChainWriter(node, Chain(Moulds(scratch), LARGE))) as writer:
        while done < transactions:
            done += writer.append()
    return node


@click.command()
@click.option(
    "--node", "nodes", multiple=True, type=click.Path(exists=True, path_type=Path), help="Folder."
)
@click.option("--transactions", default=60_000, show_default=True, help="Of a chain made here.")
@click.option("--workers", "counts", multiple=True, type=int, default=COUNTS, show_default=True)
@click.option("--rounds", default=1, show_default=True)
@click.option("--no-peer", is_flag=True, help="Leave PostgreSQL out.")
def main(
    *,
    nodes: tuple[Path, ...],
    transactions: int,
    counts: tuple[int, ...],
    rounds: int,
    no_peer: bool,
) -> None:
    """Ingest folders of nodes, or a chain that is made, with everything on; print the costs."""
    figures = []
    with tempfile.TemporaryDirectory(prefix="tonlake-bench-") as name:
        scratch = Path(name)
        chains = {str(node): node for node in nodes}
        if not chains:
            chains = {"large blocks": make_chain(scratch, transactions)}
        for title, node in chains.items():
            figures += measure_everything(
                scratch, title, node, counts=counts, rounds=rounds, peer=not no_peer
            )
    print_figures(figures, Console(width=170))


if __name__ == "__main__":
    main()
