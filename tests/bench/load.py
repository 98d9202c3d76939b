"""Loads a service that follows a node: ``python -m tests.bench.load NODE FOLDER``.

Figures of the steady rate, of overload, and of the steady rate again are printed as JSON; the exit
code is 1 if one of them is out of bounds.
"""

import argparse
import asyncio
import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.bench.clock import Machine, cpu_clock_of
from tests.bench.mixture import Mixture
from tests.bench.traffic import Outcome, Traffic, describe
from tests.commands import serving
from tests.conftest import unpack
from tests.ingest.simulator.node import SimulatedNode
from tests.ingest.simulator.report import SLOPE_MIB, Watch
from tests.made.blocks import ROOT
from tests.patience import wait_for
from tonlake.api.settings import Settings
from tonlake.ingest.blocks import McBundle
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.log.state import read_state

P99_MS = 250.0
RECOVERY_S = 5.0


def has_block(lake: Path, seqno: int) -> bool:
    """Return whether the lake has a masterchain block."""
    with suppress(LakeNotFound):
        return read_state(lake).ranges[-1][1] >= seqno
    return False


async def drive(
    address: str, pid: int, mixture: Mixture, options: argparse.Namespace
) -> tuple[dict[str, list[Outcome]], dict[str, float]]:
    """Send requests at three rates; return the outcomes of each, and memory during the first."""
    traffic = Traffic(int(address.rpartition(":")[2]), mixture.paths())
    await traffic.run(options.rate, options.warm_up)
    watch = Watch({"server": lambda: pid})
    steady = await traffic.run(options.rate, options.seconds)
    memory = watch.stop(len(steady))["server"]
    over = await traffic.run(options.rate * options.overload, options.overload_seconds)
    after = await traffic.run(options.rate, RECOVERY_S)
    traffic.close()
    return {"steady": steady, "overload": over, "after": after}, memory


def read_node(db_dir: Path, lake: Path, part: float) -> tuple[list[McBundle], int]:
    """Ingest part of a node with its zero state; return all its blocks and the number ingested."""
    with closing(open_node(db_dir)) as source:
        bundles = [source.read_bundle(at) for at in range(1, source.last_mc_seqno() + 1)]
        first = int(len(bundles) * part)
        ingest(source, lake, Span(source.first_mc_seqno(), first), Settings())
        return bundles, first


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run all phases and return the figures."""
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    packed = not options.node.is_dir()
    genuine = unpack(options.node, options.folder / "genuine") if packed else options.node
    lake = options.folder / "lake"
    bundles, first = read_node(genuine, lake, options.before)
    with closing(SimulatedNode(options.folder / "db")) as node:
        for bundle in bundles[: first + 1]:
            node.write(bundle)
        words = ("--follow", "--node", node.db_dir, "--lake", lake)
        with serving(*words, cwd=ROOT) as (address, server):
            pid = server.pid
            wait_for(lambda: has_block(lake, first + 1))
            began_s, commits = time.clock_gettime(cpu_clock_of(pid)), read_state(lake).number
            machine = Machine()
            pace_s = (options.warm_up + options.seconds) / max(1, len(bundles) - first - 1)
            with growing(node, bundles[first + 1 :], pace_s):
                mixture = Mixture(lake, options.seed)
                phases, memory = asyncio.run(drive(address, pid, mixture, options))
            spent_s = time.clock_gettime(cpu_clock_of(pid)) - began_s
            commits = read_state(lake).number - commits
    of_server = {"commits": commits, "server_cpu_s": round(spent_s, 1)}
    return judge(phases, memory) | of_server | {"machine": machine.describe()}


@contextmanager
def growing(node: SimulatedNode, bundles: list[McBundle], pace_s: float) -> Iterator[None]:
    """Let a node write a masterchain block at intervals while the block runs."""
    is_over = threading.Event()

    def write() -> None:
        for bundle in bundles:
            if is_over.wait(pace_s):
                return
            node.write(bundle)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def judge(phases: dict[str, list[Outcome]], memory: dict[str, float]) -> dict[str, Any]:
    """Return the figures of all phases, and those out of bounds."""
    found: dict[str, Any] = {name: describe(outcomes) for name, outcomes in phases.items()}
    everything = (one for outcomes in phases.values() for one in outcomes)
    found["failed"] = sorted({one.path for one in everything if one.status not in (200, 503)})[:9]
    found["memory"] = memory
    beyond = [
        f"{name}: status {status}"
        for name, allowed in (("steady", {"200"}), ("overload", {"200", "503"}), ("after", {"200"}))
        for status in found[name]["statuses"]
        if status not in allowed
    ]
    if found["steady"].get("p99_ms", P99_MS) >= P99_MS:
        beyond.append(f"steady: p99 is not under {P99_MS:.0f} ms")
    if memory.get("mib_a_minute_later", 0.0) >= SLOPE_MIB:
        beyond.append(f"steady: memory grows by {SLOPE_MIB:.0f} MiB a minute or more")
    return found | {"beyond": beyond}


def main(arguments: list[str] | None = None) -> int:
    """Read the options, run, print the figures; return 1 if one is out of bounds."""
    parser = argparse.ArgumentParser(description="Ask a service that follows a node.")
    parser.add_argument("node", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--seconds", type=float, default=600, help="of the steady rate")
    parser.add_argument("--warm-up", type=float, default=10)
    parser.add_argument(
        "--overload", type=float, default=5, help="multiple of the rate during overload"
    )
    parser.add_argument("--overload-seconds", type=float, default=10)
    parser.add_argument(
        "--before", type=float, default=0.5, help="fraction of the blocks written in advance"
    )
    parser.add_argument("--seed", type=int, default=1)
    found = run(parser.parse_args(arguments))
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return int(bool(found["beyond"]))


if __name__ == "__main__":
    sys.exit(main())
