"""Benchmarks ``tonlake ingest`` with everything on: cost per transaction, by number of workers.

    python -m tests.bench.everything [--node FOLDER ...] [--chain NAME ...] [--transactions N ...]

Chains are ``network``: wallets, jettons and an exchange with recurring accounts; ``large``: a
repeated large block; ``genuine``: the blocks of a recorded network.

The unit is the CPU that PostgreSQL takes to copy and index the same rows with the service's
indexes, in the same round. Costs are marginal: the cost of the same command for the newest block
alone, which is mostly imports, is subtracted. With several rounds every figure is a median.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import click
from rich.console import Console

from tests.bench.blocks import NETWORK_NODE, unpack_node
from tests.bench.chain import LARGE, NETWORK, Chain, ChainWriter, Moulds
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
CHAINS = {"network": NETWORK, "large": LARGE}
GENUINE = "genuine"
MANY_CORES = (16, 32, 64)
UNITS, ROWS_UNITS, TWO_TO_ONE, SERIAL_PERCENT = 2.0, 0.35, 1.7, 3
MEMORY_MIB, MEMORY_OF_WORKER_MIB = 1024, 400
US_PER_S = 1e6
Folder = click.Path(exists=True, file_okay=False, path_type=Path)


class Cost(NamedTuple):
    """One ingest without its start-up: microseconds a transaction, seconds, and peaks of memory."""

    cpu_us: float
    main_us: float
    wall_us: float
    start_s: float
    used: Used


class Round(NamedTuple):
    """All costs of one chain, measured one after the other; ``peer_us`` is the unit."""

    everything: dict[int, Cost]
    rows: Cost
    peer_us: float | None


class Plan(NamedTuple):
    """Parameters of a measurement: transactions of a chain, worker counts, rounds, PostgreSQL."""

    size: int = 100_000
    counts: tuple[int, ...] = (1, 2, 4)
    rounds: int = 1
    peer: bool = True


def list_chains() -> list[str]:
    """Return the names of the available chains."""
    return [*CHAINS, *([GENUINE] if NETWORK_NODE.exists() else [])]


def measure_chain(scratch: Path, name: str, plan: Plan) -> list[Figure]:
    """Write a chain of at least ``transactions`` and return the result of ``measure_node``."""
    if name == GENUINE:
        return measure_node(scratch, name, unpack_node(NETWORK_NODE, scratch / name), plan)
    node, done = scratch / "node-everything", 0
    with closing(ChainWriter(node, Chain(Moulds(scratch), CHAINS[name]))) as writer:
        while done < plan.size:
            done += writer.append()
    figures = measure_node(scratch, name, node, plan)
    shutil.rmtree(node)
    return figures


def measure_node(scratch: Path, name: str, node: Path, plan: Plan) -> list[Figure]:
    """Ingest a node's folder with each number of workers; return costs, units, shares, memory."""
    done = [_go_round(scratch, node, plan) for _ in range(plan.rounds)]
    transactions = done[0].rows.used.transactions
    area = f"{AREA}: {name}, {transactions:,} transactions"
    figures = _describe_costs(area, done)
    first, *others = plan.counts
    for count in others:
        figures += _describe_workers(area, first, count, done)
    if others:
        figures += _describe_bound(area, [one.everything[others[-1]] for one in done])
    return figures


def _go_round(scratch: Path, node: Path, plan: Plan) -> Round:
    lake, first = scratch / "lake-everything", plan.counts[0]
    everything, peer_us = {}, None
    for count in plan.counts:
        everything[count] = cost = _measure(scratch, node, lake, count)
        if count == first and plan.peer and find_server():
            with running_server(scratch) as address:
                loaded = load_peer(address, lake, scratch)
            seconds = loaded["copy_s"] + loaded["indexes_s"]
            peer_us = seconds / cost.used.transactions * US_PER_S
        shutil.rmtree(lake)
    rows = _measure(scratch, node, lake, first, ROWS_ONLY)
    shutil.rmtree(lake)
    return Round(everything, rows, peer_us)


def _measure(
    scratch: Path, node: Path, lake: Path, workers: int, settings: Mapping[str, str] | None = None
) -> Cost:
    """Ingest all blocks, and the newest alone; keep the lake of all blocks."""
    alone = scratch / "lake-of-one"
    used = run_ingest(node, lake, workers=workers, settings=settings)
    one = run_ingest(node, alone, workers=workers, span="-1:", settings=settings)
    shutil.rmtree(alone)
    more = (used.transactions - one.transactions) / US_PER_S
    return Cost(
        cpu_us=(used.cpu_s - one.cpu_s) / more,
        main_us=(used.main_s - one.main_s) / more,
        wall_us=(used.wall_s - one.wall_s) / more,
        start_s=one.cpu_s,
        used=used,
    )


def _describe_costs(area: str, rounds: Sequence[Round]) -> list[Figure]:
    """Return the cost per transaction of one worker, with everything and for rows alone."""
    units = [one.peer_us for one in rounds if one.peer_us is not None]
    first = next(iter(rounds[0].everything))
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
    """Return the costs of several workers relative to one, and the memory of each process."""
    costs = [one.everything[count] for one in rounds]
    faster = [one.everything[first].wall_us / one.everything[count].wall_us for one in rounds]
    main_mib = max(cost.used.main_mib for cost in costs)
    together = max((cost.used for cost in costs), key=attrgetter("together_mib"))
    peaks = [f"{mib:,.0f}" for mib in max(costs, key=_worker_mib).used.others_mib]
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
            targets={"value": at_least(TWO_TO_ONE)} if (first, count) == (1, 2) else {},
        ),
        Figure(
            area=area,
            name=f"peak memory, {count} workers: the one that commits",
            unit="MiB",
            value=main_mib,
        ),
        Figure(
            area=area,
            name=f"peak memory, {count} workers: the largest worker",
            unit="MiB",
            value=max(map(_worker_mib, costs)),
            note=f"all beside the one that commits: {', '.join(peaks)}",
        ),
        Figure(
            area=area,
            name=f"peak memory, {count} workers: all processes together",
            unit="MiB",
            value=together.together_mib,
            targets={"value": at_most(MEMORY_MIB + MEMORY_OF_WORKER_MIB * count)},
            note="a page that several have counts once; the sum of their peaks is "
            f"{together.main_mib + sum(together.others_mib):,.0f} MiB",
        ),
    ]


def _worker_mib(cost: Cost) -> float:
    """Return the peak memory of the largest process other than the coordinator."""
    return max(cost.used.others_mib, default=0.0)


def _describe_bound(area: str, costs: Sequence[Cost]) -> list[Figure]:
    """Return the coordinator's share of CPU, and the throughput that it allows."""
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


@click.command()
@click.option("--node", "nodes", multiple=True, type=Folder, help="Folder of a node to ingest.")
@click.option("--chain", "chains", multiple=True, type=click.Choice([*CHAINS, GENUINE]))
@click.option("--transactions", "sizes", multiple=True, type=int, default=(100_000,))
@click.option("--workers", "counts", multiple=True, type=int, default=(1, 2, 4), show_default=True)
@click.option("--rounds", default=1, show_default=True)
@click.option("--no-peer", is_flag=True, help="Skip PostgreSQL.")
@click.option("--scratch", type=Folder, help="Folder for temporary files.")
def main(
    *,
    nodes: tuple[Path, ...],
    chains: tuple[str, ...],
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
    rounds: int,
    no_peer: bool,
    scratch: Path | None,
) -> None:
    """Ingest nodes, or synthetic chains, with everything on; print the costs."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(width=170)
    plan = Plan(sizes[0], counts, rounds, peer=not no_peer)
    with tempfile.TemporaryDirectory(prefix="tonlake-bench-", dir=scratch) as name:
        folder = Path(name)
        for node in nodes:
            print_figures(measure_node(folder, str(node), node, plan), console)
        for chain in chains or (() if nodes else list_chains()):
            for size in sizes[:1] if chain == GENUINE else sizes:
                print_figures(measure_chain(folder, chain, plan._replace(size=size)), console)


if __name__ == "__main__":
    main()
