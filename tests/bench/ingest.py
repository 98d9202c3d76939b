"""Benchmarks ingest of a node folder and following a growing node: CPU, memory, bytes.

``python -m tests.bench.ingest NODE LAKE`` ingests rows and traces in its own process, whose CPU and
peak memory are measured by the kernel, and prints them as JSON. Module ``everything`` measures the
full command with contracts, actions and index.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.bench.blocks import ROOT
from tests.bench.chain import LARGE, MIDDLING, Chain, ChainWriter, Moulds
from tests.bench.decode import has_native
from tests.bench.figure import Figure, at_least, at_most, percentile
from tests.bench.process import read_others_s
from tests.patience import compose
from tonlake.api.settings import Settings
from tonlake.lake.log.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

AREA = "node folder to committed lake, one core"
FOLLOWED_BLOCKS, WARM_BLOCKS = 32, 8
PAUSE_S = 0.1
"""Between blocks, so that maintenance is done before it is due again."""

FOLLOWED_SHARD_BLOCKS = 2
NATIVE_SPEED, MEMORY_MIB, GROWTH, FOLLOW_MS = 100_000, 2048, 1.25, 50


def measure_ingest(scratch: Path, sizes: Sequence[int]) -> list[Figure]:
    """Ingest chains of each size in each way; return speed, memory, bytes, and growth of costs."""
    moulds = Moulds(scratch)
    ways = [way for way in WAYS if way.decoder == "python" or has_native()]
    costs: dict[Way, list[float]] = {way: [] for way in ways}
    figures = []
    for size in sizes:
        node = scratch / f"node-{size}"
        transactions = 0
        with closing(ChainWriter(node, Chain(moulds, LARGE))) as writer:
            while transactions < size:
                transactions += writer.append()
        for way in ways:
            if size > way.most:
                continue
            done = ingest_apart(way, node, scratch / "lake-grown")
            costs[way].append(done["cpu_s"] / transactions)
            figures += _describe(way, transactions, done)
        shutil.rmtree(node)
    for way, per_transaction in costs.items():
        if len(per_transaction) > 1:
            figures.append(
                Figure(
                    area=AREA,
                    name=f"{way.name}: cost of a transaction, largest to smallest chain",
                    unit="x",
                    value=per_transaction[-1] / per_transaction[0],
                    targets={"value": at_most(GROWTH)},
                )
            )
    return figures


class Way(NamedTuple):
    """A way of ingest: its decoder, and the longest chain for it."""

    name: str
    decoder: str
    most: int


WAYS = (
    Way("native, rows and traces", "native", most=5_000_000),
    Way("python, rows and traces", "python", most=100_000),
)
"""The Python decoder costs the same at every size: the smaller ones show it."""


def _describe(way: Way, transactions: int, done: dict[str, float]) -> list[Figure]:
    name = f"{way.name}: {transactions:,} transactions"
    is_goal = way.decoder == "native"
    return [
        Figure(
            area=AREA,
            name=name,
            unit="tx/s/core",
            value=transactions / done["cpu_s"],
            wall=transactions / done["wall_s"],
            targets={"value": at_least(NATIVE_SPEED)} if is_goal else {},
            note="wall: transactions per second of wall time",
        ),
        Figure(
            area=AREA,
            name=f"{name}, peak memory",
            unit="MiB",
            value=done["memory_mib"],
            targets={"value": at_most(MEMORY_MIB)},
        ),
        Figure(
            area=AREA,
            name=f"{name}, size",
            unit="bytes/tx",
            value=done["bytes"] / transactions,
            note="without look-ups; bodies and external messages come again, so less than real",
        ),
    ]


def ingest_apart(way: Way, node: Path, lake_dir: Path) -> dict[str, float]:
    """Ingest in a separate process; return the result of ``ingest_node`` and remove the lake."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.ingest", str(node), str(lake_dir)],
        cwd=ROOT,
        env=os.environ | {"TONLAKE_NATIVE": "1" if way.decoder == "native" else "0"},
        check=True,
        stdout=subprocess.PIPE,
    )
    shutil.rmtree(lake_dir)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def ingest_node(node: Path, lake_dir: Path) -> dict[str, float]:
    """Ingest rows and traces, as the command does; return seconds, MiB and bytes."""
    from tonlake.ingest.decode.heap import keep_freed_memory  # noqa: PLC0415
    from tonlake.ingest.run.pipeline import ingest  # noqa: PLC0415
    from tonlake.ingest.source.node.source import open_node  # noqa: PLC0415
    from tonlake.ingest.span import Span  # noqa: PLC0415

    keep_freed_memory()
    settings = compose(ingest={"detect_contracts": False, "classify_actions": False})
    before = resource.getrusage(resource.RUSAGE_SELF)
    began_s = time.perf_counter()
    with closing(open_node(node)) as source:
        span = Span(source.first_mc_seqno(), source.last_mc_seqno())
        report = ingest(source, lake_dir, span, settings)
    if report.holes or report.stopped_at is not None:
        raise ValueError(f"not everything was ingested: {report}")
    wall_s = time.perf_counter() - began_s
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_s": used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime,
        "wall_s": wall_s,
        "memory_mib": used.ru_maxrss / 1024,
        "bytes": float(lake_bytes(lake_dir)),
    }


def lake_bytes(lake_dir: Path) -> int:
    """Return the size of the data files of a lake's newest snapshot."""
    files = open_snapshot(lake_dir, check_digests=False).files
    return sum(file.bytes for group in files.values() for file in group)


def measure_follow(scratch: Path) -> list[Figure]:
    """Write masterchain blocks to a node one by one and ingest each."""
    from tonlake.ingest.run.follow import Follower  # noqa: PLC0415
    from tonlake.ingest.source.node.source import open_node  # noqa: PLC0415

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
    name = f"following the tip, {chain.transactions_per_mc_block} transactions a block"
    return [
        Figure(
            area=AREA,
            name=name,
            unit="ms/block",
            value=percentile(costs_ms[WARM_BLOCKS:], 0.5),
            p99=percentile(costs_ms[WARM_BLOCKS:], 0.99),
            wall=percentile(walls_ms[WARM_BLOCKS:], 0.5),
            targets={"value": at_most(FOLLOW_MS)},
            note="decode, contracts, actions and commit, this process alone; "
            + ("native" if has_native() else "python"),
        ),
        Figure(
            area=AREA,
            name=f"{name}, with all processes",
            unit="ms/block",
            value=sum(costs_ms[WARM_BLOCKS:]) / FOLLOWED_BLOCKS + others_ms,
            note="mean, with get-methods in the TVM and maintenance: index, merges",
        ),
    ]


if __name__ == "__main__":
    found = ingest_node(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.write(json.dumps(found))
