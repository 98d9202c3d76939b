"""Ingest with everything by one, two and four workers: throughput, and what stays serial.

The processor's time of the coordinator alone bounds the throughput on any number of cores: every
commit passes through it.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from typing import TYPE_CHECKING

from tests.bench.chain import LARGE, Chain, ChainWriter, Moulds
from tests.bench.figure import Figure, at_least
from tests.bench.ingest import WAYS, ingest_apart

if TYPE_CHECKING:
    from pathlib import Path

AREA = "ingest by several workers"
COUNTS = (1, 2, 4)
MANY_CORES = (16, 32, 64)
TWO_TO_ONE = 1.7
EVERYTHING = next(way for way in WAYS if way.derived)


def measure_workers(scratch: Path, transactions: int) -> list[Figure]:
    """Ingest one chain by each number of workers, and report the wall time beside that of one."""
    node, done = scratch / "node-shared", 0
    with closing(ChainWriter(node, Chain(Moulds(scratch), LARGE))) as writer:
        while done < transactions:
            done += writer.append()
    lake = scratch / "lake-shared"
    found = {count: ingest_apart(EVERYTHING, node, lake, workers=count) for count in COUNTS}
    shutil.rmtree(node)
    figures = [
        Figure(
            area=AREA,
            name=f"{count} workers to one: throughput, {done:,} transactions",
            unit="x",
            value=found[1]["wall_s"] / found[count]["wall_s"],
            wall=done / found[count]["wall_s"],
            targets={"value": at_least(TWO_TO_ONE)} if count == COUNTS[1] else {},
            note="wall: transactions per second of wall time",
        )
        for count in COUNTS[1:]
    ]
    several = found[COUNTS[-1]]
    every_s = several["cpu_s"] + several["workers_cpu_s"]
    figures.append(
        Figure(
            area=AREA,
            name="coordinator's share of the processor's time",
            unit="%",
            value=100 * several["cpu_s"] / every_s,
            note="without the TVM's processes",
        )
    )
    return figures + [
        Figure(
            area=AREA,
            name=f"bound by cores and coordinator, {cores} cores",
            unit="tx/s",
            value=min(cores * done / every_s, done / several["cpu_s"]),
            note="computed from the processor's times with four workers",
        )
        for cores in MANY_CORES
    ]
