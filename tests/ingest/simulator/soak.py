"""A long run of a growing node, its follower and clients, without faults and then with them.

``python -m tests.ingest.simulator.soak NODE FOLDER --blocks 5000 --faults 200 --readers 8``

Every answer is compared with the node's blocks, and the final lake with one ingested from the last
chain in one run. Figures are printed as JSON; the exit code is 1 if one is out of bounds.
"""

import argparse
import json
import math
import random
import shutil
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.bench.clock import Machine
from tests.conftest import unpack
from tests.ingest.simulator.chain import MIDDLING, DemoMoulds, Supply
from tests.ingest.simulator.fault import BACK_MC_BLOCKS, Clock, Faults
from tests.ingest.simulator.model import Model, name_of
from tests.ingest.simulator.process import NodeProcess
from tests.ingest.simulator.readers import Client, Readers, Refused, Wrong
from tests.ingest.simulator.report import Watch, compare, describe_delays, describe_log, judge
from tests.ingest.simulator.service import Service
from tests.made.chain import Chain
from tests.patience import wait_for
from tonlake.ingest.source.node.source import open_node
from tonlake.lake.maintenance.verify import verify_lake

SETTINGS = {
    "TONLAKE_FOLLOW_SHORTER_MS": "200",
    "TONLAKE_FOLLOW_RESTART_S": "1",
    "TONLAKE_INGEST_CACHED_ROWS": "5000",
}
"""What dies every few seconds is started again at once, and a node that went back soon goes on.

What is remembered reaches its bound early, or memory would grow for hours until it does.
"""

GROWN_SLICES = tuple(range(0, 1 << 16, 400))
GENUINE_SLICES = tuple(range(0, 160, 20))
BACK_PART = 0.01
"""The part of the blocks before which a node goes back."""


class Soak:
    def __init__(self, options: argparse.Namespace) -> None:
        """Start node, service and clients."""
        self._options = options
        self._dice = random.Random(options.seed)  # noqa: S311 - no secret
        folder: Path = options.folder
        shutil.rmtree(folder, ignore_errors=True)
        self._lake = folder / "lake"
        self._lake.mkdir(parents=True)
        self._supply = make_supply(options)
        self._model = Model()
        clock = Clock(folder)
        slices = GENUINE_SLICES if options.genuine else GROWN_SLICES
        self._node = NodeProcess(folder / "db", slices)
        self._service = Service(folder / "db", self._lake, clock, SETTINGS)
        self._faults = Faults(self._node, self._service, clock, self._dice)
        self._readers = Readers(self._service.port, self._model, options.readers)
        self._backs = 0

    def run(self) -> dict[str, Any]:
        """Run it all, and return the figures."""
        self._write()
        self._wait_for_service()
        self._readers.start()
        try:
            found = {"growing": self._grow(), "faulty": self._let_things_happen()}
        finally:
            self._readers.stop()
            self._service.stop()
            self._node.close()
        written, folder = self._node.written, self._options.folder
        found["end"] = {
            "masterchain_blocks": len(written),
            "tables_that_differ": compare(self._lake, written, folder),
            "damage": len(verify_lake(self._lake).damage),
            "log": describe_log(self._lake),
        }
        return found | {"beyond": judge(found, self._options)}

    def _grow(self) -> dict[str, Any]:
        watch = Watch(
            {
                "server": lambda: self._service.pid,
                "follower": lambda: self._service.follower,
                "maintenance": lambda: self._service.maintenance,
            }
        )
        machine, began_s, names = Machine(), time.monotonic(), []
        for done in range(self._options.blocks):
            if not self._supply.has(self._node.last + 1):
                self._go_back()
            names.append(self._write())
            due_s = began_s + (done + 1) * self._options.pause_ms / 1000
            time.sleep(max(0.0, due_s - time.monotonic()))
        lasted_s = time.monotonic() - began_s
        self._wait_for_end()
        processes, blocks_a_second = watch.stop(len(names)), len(names) / lasted_s
        spent_ms = sum(
            processes[name].get("cpu_ms_a_block", 0.0) for name in ("follower", "maintenance")
        )
        figures = {
            "masterchain_blocks": len(names),
            "blocks_a_second": round(blocks_a_second, 2),
            "load_of_follower": round(spent_ms / 1000 * blocks_a_second, 3),
            "machine": machine.describe(),
            "processes": processes,
        }
        return figures | self._describe(names) | {"log": describe_log(self._lake)}

    def _let_things_happen(self) -> dict[str, Any]:
        options = self._options
        due = sorted(self._dice.choices(range(options.faulty_blocks), k=options.faults))
        names: list[str] = []
        for done in range(options.faulty_blocks):
            if not self._supply.has(self._node.last + 1) or (
                self._node.last > BACK_MC_BLOCKS and self._dice.random() < BACK_PART
            ):
                self._go_back()
            names.append(self._write())
            while due and due[0] <= done:
                due.pop(0)
                self._faults.served = self._readers.last
                self._faults.let_one_happen()
            time.sleep(options.pause_ms / 1000)
        self._wait_for_end()
        figures = {
            "masterchain_blocks": len(names),
            "faults": self._faults.happened.total(),
            "of_them": dict(sorted(self._faults.happened.items())),
            "roll_backs": self._backs,
        }
        return figures | self._describe(names)

    def _describe(self, names: list[str]) -> dict[str, Any]:
        """Return what the clients saw since the last call."""
        readers = self._readers
        found = {
            "answers_compared": dict(readers.asked),
            "wrong": [*readers.faults[:5]],
            "connections_lost": readers.lost,
            "refused": readers.refused,
            "complete_to_served": describe_delays(self._model.list_delays(names)),
        }
        readers.asked.clear()
        readers.faults.clear()
        readers.lost = readers.refused = 0
        return found

    def _write(self) -> str:
        """Let the node write its next block; return the block's key."""
        written = self._node.written
        before = written[-1] if written else None
        bundle = self._supply.make(len(written) + 1, before)
        name = self._model.add(bundle, before)
        killed_after_s, self._faults.dies_in_s = self._faults.dies_in_s, None
        moment_s = self._node.write(bundle, killed_after_s=killed_after_s)
        self._model.complete_s[name] = moment_s
        return name

    def _go_back(self) -> None:
        oldest = min(self._node.open_slices) + 1
        after = max(oldest, self._node.last - self._dice.randint(1, BACK_MC_BLOCKS))
        self._node.roll_back(after)
        self._backs += 1
        self._supply.part(self._backs)

    def _wait_for_service(self) -> None:
        """Wait until there is an answer: a lake begins with its first commit."""

        def is_up() -> bool:
            with closing(Client(self._service.port)) as client, suppress(OSError, Wrong, Refused):
                client.ask("/api/v3/masterchainInfo")
                return True
            return False

        wait_for(is_up, self._options.patience_s)

    def _wait_for_end(self) -> None:
        """Wait until the newest block is served."""
        name = name_of(self._node.written[-1])
        wait_for(lambda: name in self._model.served_s, self._options.patience_s)


def make_supply(options: argparse.Namespace) -> Supply:
    """Return the next bundle for the node."""
    packed = options.node.is_file()
    if not options.genuine:
        return Supply([], Chain(DemoMoulds(options.folder), MIDDLING, options.shard_blocks))
    db_dir = unpack(options.node, options.folder / "genuine") if packed else options.node
    with closing(open_node(db_dir)) as source:
        return Supply([source.read_bundle(at) for at in range(1, source.last_mc_seqno() + 1)], None)


def main(arguments: list[str] | None = None) -> int:
    """Read the options, run, print the figures; return 1 if anything is out of bounds."""
    parser = argparse.ArgumentParser(description="Follow a node to which everything happens.")
    parser.add_argument("node", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=5000, help="written before things happen")
    parser.add_argument("--faulty-blocks", type=int, default=1800, help="written while they do")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--pause-ms", type=int, default=100, help="between two blocks")
    parser.add_argument("--shard-blocks", type=int, default=1, help="of each masterchain block")
    parser.add_argument("--max-median-ms", type=float, default=300)
    parser.add_argument("--max-p99-ms", type=float, default=math.inf)
    parser.add_argument(
        "--max-load", type=float, default=math.inf, help="of the follower, in cores"
    )
    parser.add_argument("--patience-s", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--genuine", action="store_true", help="the blocks of NODE again and again; no longer chain"
    )
    found = Soak(parser.parse_args(arguments)).run()
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return int(bool(found["beyond"]))


if __name__ == "__main__":
    sys.exit(main())
