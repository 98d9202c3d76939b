"""Results of a long run: delays, memory, commits, and whether all of them are right."""

import argparse
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from statistics import linear_regression, mean
from typing import Any

import psutil

from tests.bench.clock import cpu_clock_of
from tests.bench.figure import percentile
from tests.ingest.facts import ask
from tests.ingest.simulator.node import SimulatedNode
from tests.ingest.whole import ingest_node
from tests.patience import compose
from tonlake.ingest.blocks import McBundle
from tonlake.lake.log.state import LogState, read_commit
from tonlake.lake.maintenance.schedule import MAX_MIB

TABLES = ("blocks", "transactions", "messages", "account_states", "traces", "transaction_traces")
SAMPLE_S, SLOPE_MIB = 1.0, 1.0
MAX_TOOTH = 1.25
"""Maintenance ends its process after the work in which it passed its bound."""


def read_own_mib(pid: int) -> float:
    """Return the private memory of a process."""
    used = psutil.Process(pid).memory_info()
    return float(used.rss - used.shared) / (1 << 20)


class Watch:
    """Samples of the private memory of processes, and of their CPU time."""

    def __init__(self, pids: dict[str, Callable[[], int | None]]) -> None:
        """Take a function that returns the current process ids."""
        self._pids = pids
        self._samples: dict[str, list[tuple[float, float]]] = {name: [] for name in pids}
        self._cpu_s: dict[str, dict[int, tuple[float, float]]] = {name: {} for name in pids}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(SAMPLE_S):
            for name, find in self._pids.items():
                with suppress(OSError, psutil.Error):
                    if (pid := find()) is not None:
                        self._sample(name, pid)

    def _sample(self, name: str, pid: int) -> None:
        self._samples[name].append((time.monotonic(), read_own_mib(pid)))
        cpu_s = time.clock_gettime(cpu_clock_of(pid))
        first_s = self._cpu_s[name].get(pid, (cpu_s, cpu_s))[0]
        self._cpu_s[name][pid] = first_s, cpu_s

    def stop(self, blocks: int) -> dict[str, dict[str, float]]:
        """Return the MiB of each half, slope in the second half, most, and CPU per block."""
        self._is_over.set()
        self._thread.join()
        return {name: self._describe(name, blocks) for name in self._pids}

    def _describe(self, name: str, blocks: int) -> dict[str, float]:
        samples = self._samples[name]
        half = len(samples) // 2
        if half < 2:
            return {}
        spent_s = sum(last - first for first, last in self._cpu_s[name].values())
        return {
            "mib_first_half": round(mean(mib for _, mib in samples[:half]), 1),
            "mib_later_half": round(mean(mib for _, mib in samples[half:]), 1),
            "mib_a_minute_later": round(
                linear_regression(*zip(*samples[half:], strict=True)).slope * 60, 2
            ),
            "most_mib": round(max(mib for _, mib in samples), 1),
            "cpu_ms_a_block": round(spent_s * 1000 / blocks, 1),
        }


def describe_delays(delays_s: list[float]) -> dict[str, int]:
    """Return the times from complete to served in ms."""
    parts = {"median_ms": 0.5, "p99_ms": 0.99, "longest_ms": 1.0}
    return {
        name: round(percentile(delays_s, part) * 1000) for name, part in parts.items() if delays_s
    }


def describe_log(lake: Path) -> dict[str, int]:
    """Return statistics of a lake's commits, and how many of them had a gap."""
    state = LogState()
    found = dict.fromkeys(
        ("with_blocks", "undoing", "merging", "files_merged", "of_lookups", "gaps"), 0
    )
    while (lake / "_log" / f"{state.number + 1}.json").exists():
        commit, digest = read_commit(lake, state.number + 1)
        state = state.add((commit, digest))
        found["gaps"] += len(state.ranges) != 1
        if commit.has_blocks:
            found["with_blocks"] += 1
        elif commit.undone:
            found["undoing"] += 1
        elif commit.added:
            found["merging"] += 1
            found["files_merged"] += len(commit.removed)
        else:
            found["of_lookups"] += 1
    return {"commits": state.number, **found}


def compare(lake: Path, written: list[McBundle], folder: Path) -> list[str]:
    """Return the tables whose rows differ from those of a lake ingested in one run."""
    with closing(SimulatedNode(folder / "whole", slices=(0,))) as whole:
        for bundle in written:
            whole.write(bundle)
        return compare_with_node(lake, whole.db_dir, folder)


def compare_with_node(lake: Path, db_dir: Path, folder: Path) -> list[str]:
    """Return the tables whose rows differ from those of a lake ingested at once from a node."""
    settings = compose(ingest={"detect_contracts": False}, lake={"build_index": False})
    reference = folder / "reference"
    ingest_node(db_dir, reference, settings, 1)
    # Sums, as millions of rows are more than memory.
    rows = "select count(*), sum(hash(each)::hugeint) from (select * exclude (day) from {}) each"
    return [
        name for name in TABLES if ask(lake, rows.format(name)) != ask(reference, rows.format(name))
    ]


def judge(found: dict[str, Any], limits: argparse.Namespace) -> list[str]:
    """Return the figures that are out of bounds."""
    growing, faulty, end = found["growing"], found["faulty"], found["end"]
    beyond = [f"{name} has other rows" for name in end["tables_that_differ"]]
    beyond += [
        f"{name}: {fault}"
        for name, part in (("growing", growing), ("faulty", faulty))
        for fault in part["wrong"]
    ]
    if growing["connections_lost"] or growing["refused"]:
        beyond.append("growing: the service was not always there")
    beyond += [
        f"growing: the {name}'s memory grows by {SLOPE_MIB:.0f} MiB a minute or more"
        for name, figures in growing["processes"].items()
        if name != "maintenance" and figures.get("mib_a_minute_later", SLOPE_MIB) >= SLOPE_MIB
    ]
    # Its process is replaced once it has grown, so its slope says which tooth of the saw was seen.
    most_mib = growing["processes"]["maintenance"].get("most_mib", 0.0)
    if most_mib > MAX_TOOTH * MAX_MIB:
        beyond.append(f"growing: maintenance takes {most_mib:.0f} MiB, bound {MAX_MIB}")
    if end["log"]["gaps"]:
        beyond.append("there were gaps")
    if end["damage"]:
        beyond.append("files are damaged")
    if not growing["log"]["merging"]:
        beyond.append("growing: nothing was merged")
    beyond += [
        f"growing: {name} is {growing['complete_to_served'][name]}, limit {limit:.0f}"
        for name, limit in (("median_ms", limits.max_median_ms), ("p99_ms", limits.max_p99_ms))
        if growing["complete_to_served"][name] >= limit
    ]
    if growing["load_of_follower"] > limits.max_load:
        beyond.append(f"growing: follower and maintenance take {growing['load_of_follower']} cores")
    return beyond
