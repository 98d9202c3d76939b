"""Follows a long chain of small blocks as fast as it grows: what a block costs, what stays small.

``python -m tests.ingest.simulator.tip FOLDER --blocks 200000 --shard-blocks 1``

The chain has no pauses, so minutes of a fast network pass in seconds; the times that files and log
entries wait are as much shorter. The follower runs in this process and its maintenance beside it,
as always. Figures are printed as JSON for each tenth of the run; the exit code is 1 if the last one
is out of bounds.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import time
from contextlib import closing
from pathlib import Path

from tests.bench.clock import cpu_clock_of
from tests.bench.manyfiles import open_lake, show_status
from tests.ingest.simulator.chain import MiddlingMoulds
from tests.ingest.simulator.node import SimulatedNode
from tests.ingest.simulator.report import compare_with_node
from tests.ingest.simulator.service import list_children
from tests.made.chain import Chain
from tests.patience import compose
from tonlake.ingest.run.follow import Follower
from tonlake.ingest.source.node.source import open_node
from tonlake.lake.maintenance.verify import verify_lake

MAX_FILES, MAX_ENTRIES, MAX_OPEN_MS, MAX_STATUS_MS, MAX_GROWTH = 6_000, 3_000, 300, 2_000, 1.1
PARTS = 10
SLICE_MC_BLOCKS = 2_000
LAKE = {"replaced_grace_s": 2, "log_age_s": 2}
"""Seconds instead of minutes: a virtual minute has passed by then."""

Figures = dict[str, float]


def spent_s() -> tuple[float, float]:
    """Return the CPU seconds of this process, and those of its children, ended ones included."""
    own = time.process_time()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    live = (time.clock_gettime(cpu_clock_of(pid)) for pid in list_children(os.getpid()))
    return own, used.ru_utime + used.ru_stime + sum(live)


class Tip:
    """A node, its follower, and the lake."""

    def __init__(self, folder: Path, shard_blocks: int, blocks: int) -> None:
        """Begin an empty chain."""
        shutil.rmtree(folder, ignore_errors=True)
        self.lake = folder / "lake"
        self.lake.mkdir(parents=True)
        self._chain = Chain(MiddlingMoulds(folder), "the middling one", shard_blocks)
        slices = tuple(range(0, blocks, SLICE_MC_BLOCKS))
        self.node = SimulatedNode(folder / "db", slices=slices)
        self.node.write(self._chain.grow())
        self.problems: list[str] = []
        self._follower = Follower(
            lambda: open_node(folder / "db"),
            self.lake,
            compose(lake=LAKE),
            notify=self.problems.append,
        )

    def follow(self, blocks: int) -> Figures:
        """Write and follow blocks one by one; return what they cost and what there is now."""
        followed_s, before_s = 0.0, spent_s()[1]
        for _ in range(blocks):
            self.node.write(self._chain.grow())
            self.node.written[-1] = None  # the memory of the follower is measured
            began_s = time.process_time()
            self._follower.step()
            followed_s += time.process_time() - began_s
        beside_s = spent_s()[1] - before_s
        opened = [open_lake(self.lake).open_ms for _ in range(3)]
        return {
            "mc_blocks": self.node.last,
            "cpu_ms_a_block": (followed_s + beside_s) * 1000 / blocks,
            "of_it_maintenance": beside_s * 1000 / blocks,
            "files": sum(path.is_file() for path in self.lake.rglob("*")),
            "log_entries": sum(1 for _ in (self.lake / "_log").iterdir()),
            "lake_mib": sum(path.stat().st_size for path in self.lake.rglob("*")) / (1 << 20),
            "open_ms": min(opened),
            "status_ms": show_status(self.lake),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }

    def close(self) -> None:
        """Stop the follower and the node."""
        self._follower.close()
        self.node.close()


def judge(parts: list[Figures]) -> list[str]:
    """Return the figures of the last part that are out of bounds."""
    last = parts[-1]
    most = {
        "files": MAX_FILES,
        "log_entries": MAX_ENTRIES,
        "open_ms": MAX_OPEN_MS,
        "status_ms": MAX_STATUS_MS,
        "cpu_ms_a_block": MAX_GROWTH * parts[1]["cpu_ms_a_block"],
    }
    return [
        f"{name}: {last[name]:.1f}, limit {limit:.1f}"
        for name, limit in most.items()
        if last[name] > limit
    ]


def main(arguments: list[str] | None = None) -> int:
    """Read the options, run, print the figures; return 1 if anything is out of bounds."""
    parser = argparse.ArgumentParser(description="Follow a long chain of small blocks.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=200_000)
    parser.add_argument("--shard-blocks", type=int, default=1, help="of each masterchain block")
    options = parser.parse_args(arguments)
    with closing(Tip(options.folder, options.shard_blocks, options.blocks)) as tip:
        parts = []
        for _ in range(PARTS):
            parts.append(tip.follow(options.blocks // PARTS))
            sys.stderr.write(json.dumps(parts[-1]) + "\n")
    beyond = judge(parts) + tip.problems
    beyond += [error.file for error in verify_lake(tip.lake).damage]
    beyond += compare_with_node(tip.lake, tip.node.db_dir, options.folder)
    sys.stdout.write(json.dumps({"parts": parts, "beyond": beyond}, indent=1) + "\n")
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main())
