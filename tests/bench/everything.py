"""Benchmarks ``tonlake ingest`` with everything on, and following a growing node.

The peer is the CPU that PostgreSQL takes to copy and index the same rows. Costs are marginal: the
cost of the same command for the newest block alone, which is mostly imports, is subtracted.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from tests.bench.decode import has_native
from tests.bench.figure import Figure, at_least, at_most, percentile
from tests.bench.peer.store import load_peer
from tests.bench.postgres import find_server, running_server
from tests.bench.process import Used, read_others_s, run_ingest
from tests.ingest.simulator.chain import VARIED, DemoMoulds
from tests.made.blocks import NETWORK_NODE, ROOT, unpack_node
from tests.made.chain import DEMO_BLOCK, MIDDLING, Chain, ChainWriter, Moulds
from tonlake.api.settings import Settings
from tonlake.ingest.run.follow import PACK_ROWS, Follower
from tonlake.ingest.run.pipeline import Pipeline
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.log.state import LogReader
from tonlake.lake.maintenance.schedule import maintain_once

AREA = "tonlake ingest, index included"
ROWS_ONLY = {
    "TONLAKE_INGEST_DETECT_CONTRACTS": "0",
    "TONLAKE_INGEST_CLASSIFY_ACTIONS": "0",
    "TONLAKE_LAKE_BUILD_INDEX": "0",
}
UNITS, ROWS_UNITS, TWO_TO_ONE = 2.0, 0.35, 1.7
MEMORY_MIB, MEMORY_OF_WORKER_MIB = 1024, 400
US_PER_S = 1e6
FOLLOWED_BLOCKS, WARM_BLOCKS, FOLLOWED_SHARD_BLOCKS, FOLLOW_MS = 32, 8, 2, 50
PAUSE_S = 0.1
"""Between blocks, so that maintenance is done before it is due again."""

FAST_NODE = ROOT.parent / "shared" / "node-2026" / "localnet4-db.tar.zst"
"""A node of a genuine network of a masterchain block every 400 ms."""
SMALL_BLOCKS = range(577, 1089)
SMALL_MS = {range(2, 9): 6, range(25, 41): 12}
"""Transactions of a block, and its CPU milliseconds, maintenance included."""

DAY_BLOCKS, DAY_SHARD_BLOCKS, DAY_SHARES, DAY_S, DAY_GROWTH = 432_000, 3, (100, 10), 1200, 1.1
"""Masterchain blocks of a day of 2026, shard blocks of each, parts that are ingested, limits."""


class Cost(NamedTuple):
    """One ingest without its start-up: microseconds a transaction, seconds, and its resources."""

    cpu_us: float
    wall_us: float
    start_s: float
    used: Used


def find_node(scratch: Path, transactions: int) -> Path:
    """Unpack the recorded network, or write a chain of at least that many transactions."""
    if NETWORK_NODE.exists():
        return unpack_node(NETWORK_NODE, scratch / "node-network")
    return write_chain(scratch, DEMO_BLOCK, transactions)


def write_chain(scratch: Path, block: str, transactions: int) -> Path:
    """Write a node of copies of a block, and return its folder."""
    node, done = scratch / f"node-{transactions}", 0
    with closing(ChainWriter(node, Chain(Moulds(scratch), block))) as writer:
        while done < transactions:
            done += writer.append()
    return node


def measure_node(
    scratch: Path, node: Path, workers: Sequence[int], *, peer: bool = True
) -> list[Figure]:
    """Ingest a node with each number of workers; return costs, speed-up and memory."""
    lake = scratch / "lake-everything"
    costs, peer_us = {}, None
    for count in workers:
        costs[count] = cost = _measure(scratch, node, lake, count)
        if count == workers[0] and peer and find_server():
            with running_server(scratch) as address:
                loaded = load_peer(address, lake, scratch)
            seconds = loaded["copy_s"] + loaded["indexes_s"]
            peer_us = seconds / cost.used.transactions * US_PER_S
        shutil.rmtree(lake)
    rows = _measure(scratch, node, lake, workers[0], ROWS_ONLY)
    shutil.rmtree(lake)
    area = f"{AREA}: {rows.used.transactions:,} transactions"
    first, *others = workers
    return [
        _describe_cost(area, "everything", costs[first], UNITS).beside(peer_us),
        _describe_cost(area, "rows and traces", rows, ROWS_UNITS).beside(peer_us),
        *(figure for count in others for figure in _describe_workers(area, first, count, costs)),
    ]


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
        wall_us=(used.wall_s - one.wall_s) / more,
        start_s=one.cpu_s,
        used=used,
    )


def _describe_cost(area: str, name: str, cost: Cost, units: float) -> Figure:
    """Return the cost of a transaction in one process, at most ``units`` times the peer's."""
    return Figure(
        area=area,
        name=f"{name}, one process",
        unit="us/tx",
        value=cost.cpu_us,
        wall=cost.wall_us,
        targets={"ratio": at_least(1 / units)},
        note=f"{US_PER_S / cost.cpu_us:,.0f} tx/s/core, and {cost.start_s:.1f} s once, to start; "
        f"{cost.used.main_mib:,.0f} MiB",
    )


def _describe_workers(area: str, first: int, count: int, costs: Mapping[int, Cost]) -> list[Figure]:
    """Return the costs of several workers relative to one, and the memory of all processes."""
    cost = costs[count]
    largest_mib = max(cost.used.main_mib, *cost.used.others_mib)
    return [
        Figure(
            area=area,
            name=f"everything, {count} workers",
            unit="us/tx",
            value=cost.cpu_us,
            wall=cost.wall_us,
            note=f"CPU of all processes; {cost.used.main_s / cost.used.cpu_s:.0%} of it in the one "
            "that commits",
        ),
        Figure(
            area=area,
            name=f"throughput by the clock, {count} workers to one process",
            unit="x",
            value=costs[first].wall_us / cost.wall_us,
            targets={"value": at_least(TWO_TO_ONE)} if (first, count) == (1, 2) else {},
        ),
        Figure(
            area=area,
            name=f"peak memory, {count} workers: all processes together",
            unit="MiB",
            value=cost.used.together_mib,
            targets={"value": at_most(MEMORY_MIB + MEMORY_OF_WORKER_MIB * count)},
            note=f"a page that several have counts once; the largest has {largest_mib:,.0f} MiB",
        ),
    ]


def measure_follow(scratch: Path) -> list[Figure]:
    """Write masterchain blocks to a node one by one and ingest each."""
    chain = Chain(Moulds(scratch), MIDDLING, FOLLOWED_SHARD_BLOCKS)
    node, lake_dir = scratch / "node-tip", scratch / "lake-tip"
    costs_ms, walls_ms = [], []
    others_s = 0.0
    with closing(ChainWriter(node, chain)) as writer:
        writer.append()
        follower = Follower(lambda: open_node(node), lake_dir, Settings(), notify=print)
        for at in range(WARM_BLOCKS + FOLLOWED_BLOCKS):
            if at == WARM_BLOCKS:
                others_s = read_others_s()
            cpu_s, wall_s = time.process_time(), time.perf_counter()
            follower.step()
            costs_ms.append((time.process_time() - cpu_s) * 1000)
            walls_ms.append((time.perf_counter() - wall_s) * 1000)
            writer.append()
            time.sleep(PAUSE_S)
        follower.close()
        others_ms = (read_others_s() - others_s) * 1000 / FOLLOWED_BLOCKS
    shutil.rmtree(node)
    shutil.rmtree(lake_dir)
    costs_ms, walls_ms = costs_ms[WARM_BLOCKS:], walls_ms[WARM_BLOCKS:]
    area = "node folder to committed lake, one core"
    name = f"following the tip, {chain.transactions_per_mc_block} transactions a block"
    return [
        Figure(
            area=area,
            name=name,
            unit="ms/block",
            value=percentile(costs_ms, 0.5),
            p99=percentile(costs_ms, 0.99),
            wall=percentile(walls_ms, 0.5),
            targets={"value": at_most(FOLLOW_MS)},
            note="decode, contracts, actions and commit, this process alone; "
            + ("native" if has_native() else "python"),
        ),
        Figure(
            area=area,
            name=f"{name}, with all processes",
            unit="ms/block",
            value=mean(costs_ms) + others_ms,
            note="mean, with get-methods and maintenance: index, merges",
        ),
    ]


def measure_small_blocks(scratch: Path) -> list[Figure]:
    """Commit blocks of a genuine fast network one by one, maintaining the lake meanwhile."""
    settings, lake_dir = Settings(), scratch / "lake-fast"
    costs_ms: dict[range, list[float]] = {sizes: [] for sizes in SMALL_MS}
    upkeep_s = 0.0
    with closing(open_node(unpack_node(FAST_NODE, scratch / "node-fast"))) as source:
        pipeline, log = Pipeline(source, lake_dir, settings), LogReader(lake_dir)
        pipeline.bring(Span(1, SMALL_BLOCKS[0] - 1))
        maintain_once(log, settings.lake)
        pipeline.pack_rows = PACK_ROWS
        for count, seqno in enumerate(SMALL_BLOCKS, 1):
            cpu_s = time.process_time()
            report = pipeline.bring(Span(seqno, seqno))
            cost_ms = (time.process_time() - cpu_s) * 1000
            for sizes in (sizes for sizes in SMALL_MS if report.rows["transactions"] in sizes):
                costs_ms[sizes].append(cost_ms)
            if count % settings.lake.maintenance_commits == 0:
                cpu_s = time.process_time()
                maintain_once(log, settings.lake)
                upkeep_s += time.process_time() - cpu_s
        pipeline.close()
    shutil.rmtree(lake_dir)
    upkeep_ms = upkeep_s * 1000 / len(SMALL_BLOCKS)
    return [
        Figure(
            area="node folder to committed lake, one core",
            name=f"a block of {sizes.start} to {sizes.stop - 1} transactions, a fast network",
            unit="ms/block",
            value=percentile(costs_ms[sizes], 0.5) + upkeep_ms,
            targets={"value": at_most(most_ms)},
            note=f"{len(costs_ms[sizes])} blocks; {upkeep_ms:.1f} ms are maintenance",
        )
        for sizes, most_ms in SMALL_MS.items()
    ]


def measure_day(scratch: Path) -> list[Figure]:
    """Ingest a hundredth and a tenth of a day of small blocks, everything on, with two workers."""
    node, lake_dir, used = scratch / "node-day", scratch / "lake-day", []
    for share in DAY_SHARES:
        chain = Chain(DemoMoulds(scratch), VARIED, DAY_SHARD_BLOCKS)
        with closing(ChainWriter(node, chain)) as writer:
            for _ in range(DAY_BLOCKS // share):
                writer.append()
        used.append(run_ingest(node, lake_dir, workers=2))
        shutil.rmtree(node)
        shutil.rmtree(lake_dir)
    few, many = used
    area = f"a day of {DAY_BLOCKS:,} masterchain blocks, two workers"
    return [
        Figure(
            area=area,
            name="ten times the wall time of its tenth",
            unit="s",
            value=many.wall_s * DAY_SHARES[1],
            targets={"value": at_most(DAY_S)},
            note=f"{many.transactions:,} transactions, {many.cpu_s:,.0f} s of CPU",
        ),
        Figure(
            area=area,
            name="CPU of a transaction of the tenth to one of the hundredth",
            unit="x",
            value=many.cpu_s / many.transactions / (few.cpu_s / few.transactions),
            targets={"value": at_most(DAY_GROWTH)},
        ),
    ]
