"""Follows a long chain of small blocks as fast as it grows: what a block costs, what stays small.

``python -m tests.ingest.simulator.tip FOLDER --blocks 200000 --shards 4 --kills 50 --rollbacks 20``

The chain has no pauses, so the times that files and log entries wait are shorter than in a service,
and the caches smaller. As the speed of a machine changes, the cost of a block is judged in units of
other work: a process beside the follower ingests the first blocks of another node. The exit code is
1 if the last tenth of the run is out of bounds, or the rows are not those of one bulk ingest.
"""

import argparse
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, median
from typing import Any

import psutil

from tests.bench.clock import cpu_clock_of
from tests.bench.manyfiles import open_lake, show_status
from tests.ingest.simulator.chain import VARIED, DemoMoulds
from tests.ingest.simulator.node import SimulatedNode
from tests.ingest.simulator.process import start
from tests.ingest.simulator.report import compare_with_node, read_own_mib
from tests.ingest.simulator.service import list_family
from tests.made.chain import REMEMBERED_MC_BLOCKS, Chain
from tests.patience import compose
from tonlake.ingest.run.follow import Follower
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.log.state import LogReader
from tonlake.lake.maintenance.verify import verify_lake

MAX_FILES, MAX_ENTRIES, MAX_OPEN_MS, MAX_STATUS_MS, MAX_GROWTH = 6_000, 3_000, 300, 2_000, 1.1
CACHED_ROWS = 2_000
READING_MIB = 32
"""What Arrow's threads take for some blocks after they read a merged file."""

REFERENCE_MC_BLOCKS, REFERENCES = 4, 100
"""Blocks of the work that costs are compared with, and how often it is done in a part."""

JUDGED_MC_BLOCKS = 640
"""Blocks of a part whose cost is judged: ten runs of maintenance. Parts of fewer differ by more
than the limit, by the sizes of their blocks and by the merges among them."""

PARTS = 10
SLICE_MC_BLOCKS = 2_000
LAKE = {"replaced_grace_s": 2, "log_age_s": 2}
"""Seconds instead of minutes: a virtual minute has passed by then."""

BACK_MC_BLOCKS = 20
MAX_STEP_S, MAX_STEPS = 0.3, 300
"""A step takes about so long on a busy machine; many of a second wait for maintenance."""

KILLED = "maintenance failed: its process ended with code -9"
EXPECTED = ("masterchain blocks", KILLED, "waits for maintenance", "recovered")
"""What the follower says of roll-backs, of kills, and of maintenance that gets no time."""

Figures = dict[str, float]


def beside_s() -> float:
    """Return the CPU seconds of the children of this process, ended ones included."""
    used, live_s = resource.getrusage(resource.RUSAGE_CHILDREN), 0.0
    for child in psutil.Process().children():
        with suppress(OSError):
            live_s += time.clock_gettime(cpu_clock_of(child.pid))
    return used.ru_utime + used.ru_stime + live_s


SETTINGS = compose(lake=LAKE, follow={"shorter_ms": 0}, ingest={"cached_rows": CACHED_ROWS})


def measure_reference(calls: Connection, folder: Path) -> None:
    """Measure, for each number received, the CPU seconds to ingest that many blocks of a node."""
    for mc_blocks in iter(calls.recv, None):
        shutil.rmtree(folder / "lake", ignore_errors=True)
        began_s = time.process_time()
        with closing(open_node(folder / "db")) as source:
            ingest(source, folder / "lake", Span(1, mc_blocks), SETTINGS)
        calls.send(time.process_time() - began_s)


def follow(calls: Connection, db_dir: Path, lake: Path) -> None:
    """Run a follower: for each block of the node, follow until it is in the lake."""
    notes: list[str] = []
    follower = Follower(lambda: open_node(db_dir), lake, SETTINGS, notify=notes.append)
    log = LogReader(lake)
    with closing(follower):
        for last in iter(calls.recv, None):
            began_s = time.process_time()
            for _ in range(MAX_STEPS):
                rest_s = follower.step()
                if log.read().ranges == ((1, last),):
                    break
                time.sleep(rest_s)
            else:
                notes.append(f"does not reach {last}: {log.read().ranges}")
            spent_s = time.process_time() - began_s
            calls.send((spent_s, beside_s(), read_own_mib(os.getpid()), notes))
            notes.clear()


class Tip:
    """A node, its follower, and the lake."""

    def __init__(self, options: argparse.Namespace) -> None:
        folder: Path = options.folder
        shutil.rmtree(folder, ignore_errors=True)
        self.lake = folder / "lake"
        self.lake.mkdir(parents=True)
        made = DemoMoulds(folder), VARIED, options.shard_blocks, options.shards
        self._chain, first = Chain(*made), Chain(*made)
        with closing(SimulatedNode(folder / "reference" / "db")) as other:
            for _ in range(REFERENCE_MC_BLOCKS):
                other.write(first.grow())
        slices = tuple(range(0, options.blocks, SLICE_MC_BLOCKS))
        self.node = SimulatedNode(folder / "db", slices=slices)
        self._write()
        self.problems: list[str] = []
        self.happened: Counter[str] = Counter()
        self._dice = random.Random(options.seed)  # noqa: S311 - a repeatable choice
        self._kills = self._spread(options.kills, options.blocks)
        self._backs = self._spread(options.rollbacks, options.blocks)
        self._done = 0
        self._other, self._reference = start(measure_reference, folder / "reference")
        self._start()

    def _spread(self, count: int, blocks: int) -> set[int]:
        """Return a random moment of each of as many equal parts of the run."""
        step = blocks // max(count, 1)
        return {at * step + self._dice.randrange(step) for at in range(count)}

    def _start(self) -> None:
        self._process, self._calls = start(follow, self.node.db_dir, self.lake)
        self._beside_s = 0.0

    def follow(self, blocks: int) -> Figures:
        """Write and follow blocks one by one; return what they cost and what there is now."""
        self._spent_s = dict.fromkeys(("follower", "maintenance"), 0.0)
        self._own_mib: list[float] = []
        self._reference_s: list[float] = []
        for at in range(blocks):
            if self._done in self._backs:
                self._go_back()
            self._write()
            self._calls.send(self.node.last)
            if self._done in self._kills:
                self._kill()
            self._receive()
            if at % max(1, blocks // REFERENCES) == 0:
                self._reference.send(REFERENCE_MC_BLOCKS)
                self._reference_s.append(self._reference.recv())
            self._done += 1
        opened = [open_lake(self.lake).open_ms for _ in range(3)]
        cpu_ms = sum(self._spent_s.values()) * 1000 / blocks
        reference_ms = mean(self._reference_s) * 1000
        return {
            "mc_blocks": self.node.last,
            "cpu_ms_a_block": cpu_ms,
            "reference_ms": reference_ms,
            "cpu_of_reference": cpu_ms / reference_ms,
            "of_it_maintenance": self._spent_s["maintenance"] * 1000 / blocks,
            "files": sum(path.is_file() for path in self.lake.rglob("*")),
            "log_entries": sum(1 for _ in (self.lake / "_log").iterdir()),
            "open_ms": min(opened),
            "status_ms": show_status(self.lake),
            "follower_mib": median(self._own_mib),
            "follower_most_mib": max(self._own_mib),
        }

    def _write(self) -> None:
        self.node.write(self._chain.grow())
        if self.node.last > REMEMBERED_MC_BLOCKS:
            self.node.written[-REMEMBERED_MC_BLOCKS - 1] = None

    def _go_back(self) -> None:
        """Let the node lose its newest blocks, and the follower see it sooner or later."""
        after = max(1, self.node.last - self._dice.randint(1, BACK_MC_BLOCKS))
        self.node.roll_back(after)
        self._chain.go_back(after)
        self.happened["roll-backs"] += 1
        if self._dice.random() < 0.5:
            self._calls.send(after)
            self._receive()

    def _kill(self) -> None:
        """Kill the follower, its maintenance, or both, while they work."""
        time.sleep(self._dice.uniform(0, MAX_STEP_S))
        follower: Any = self._process.pid
        _me, *children = [each.pid for each in list_family(follower)]
        victims = self._dice.choice(([follower], children, [follower, *children]))
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.happened["kills"] += 1
        if follower in victims:
            self._process.join()
            self._start()
            self._calls.send(self.node.last)

    def _receive(self) -> None:
        """Wait until the follower has what the node has."""
        spent_s, beside_s, own_mib, notes = self._calls.recv()
        self._spent_s["follower"] += spent_s
        self._spent_s["maintenance"] += max(0.0, beside_s - self._beside_s)
        self._beside_s = max(self._beside_s, beside_s)
        self._own_mib.append(own_mib)
        self.problems += [note for note in notes if not note.startswith(EXPECTED)]

    def close(self) -> None:
        for process, calls in ((self._process, self._calls), (self._other, self._reference)):
            with suppress(BrokenPipeError):
                calls.send(None)
            process.join()
        self.node.close()


def judge(parts: list[Figures]) -> list[str]:
    """Return the figures of the last part that are out of bounds."""
    last, is_long = parts[-1], parts[-1]["mc_blocks"] >= PARTS * JUDGED_MC_BLOCKS
    most = {
        "files": MAX_FILES,
        "log_entries": MAX_ENTRIES,
        "open_ms": MAX_OPEN_MS,
        "status_ms": MAX_STATUS_MS,
        "cpu_of_reference": MAX_GROWTH * parts[1]["cpu_of_reference"] if is_long else math.inf,
        "follower_mib": MAX_GROWTH * parts[1]["follower_mib"],
        "follower_most_mib": MAX_GROWTH * parts[1]["follower_most_mib"] + READING_MIB,
    }
    return [
        f"{name}: {last[name]:.3g}, limit {limit:.3g}"
        for name, limit in most.items()
        if last[name] > limit
    ]


def main(arguments: list[str] | None = None) -> int:
    """Read the options, run, print the figures; return 1 if anything is out of bounds."""
    parser = argparse.ArgumentParser(description="Follow a long chain of small blocks.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=200_000)
    parser.add_argument(
        "--shard-blocks", type=int, default=1, help="of each shard and masterchain block"
    )
    parser.add_argument("--shards", type=int, default=1, help="1, 2, 4, 8 or 16")
    for name, default in (("--kills", 0), ("--rollbacks", 0), ("--seed", 1)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args(arguments)
    with closing(Tip(options)) as tip:
        parts = []
        for _ in range(PARTS):
            parts.append(tip.follow(options.blocks // PARTS))
            sys.stderr.write(json.dumps(parts[-1]) + "\n")
    beyond = judge(parts) + tip.problems
    beyond += [error.file for error in verify_lake(tip.lake).damage]
    beyond += compare_with_node(tip.lake, tip.node.db_dir, options.folder)
    found = {"parts": parts, "happened": tip.happened, "beyond": beyond}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main())
