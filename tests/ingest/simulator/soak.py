"""A long run: a node that grows, parts from its chain and breaks, a follower, and readers.

``python -m tests.ingest.simulator.soak NODE FOLDER --blocks 5000 --faults 200 --readers 8``

The blocks of NODE, a folder or a packed one, are written again and again: when they end, the node
goes back and another chain goes on. Every answer of a reader is compared with what the node has
ever written, and the lake in the end with one that was made of the last chain at once. Figures
are printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import statistics
import sys
import threading
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from api.snapshot import SnapshotHolder
from api.tail import Tail
from ingest.node.source import open_node
from ingest.origin import Origin
from ingest.pipeline import ingest
from ingest.span import Span
from ingest.tail import name_command
from lake.errors import LakeNotFound
from lake.settings import load_settings
from lake.snapshot import open_snapshot
from lake.verify import verify_lake
from tests.conftest import unpack
from tests.ingest.facts import ask
from tests.ingest.simulator.chain import fork
from tests.ingest.simulator.fault import Clock, Faults
from tests.ingest.simulator.node import SimulatedNode

if TYPE_CHECKING:
    from ingest.source import McBundle

TABLES = ("blocks", "transactions", "messages", "account_states", "traces", "transaction_traces")
MASTER = "select seqno, root_hash, prev_root_hash from blocks where workchain = -1 order by seqno"
BACK_MC_BLOCKS = 60
SLICES = tuple(range(0, 160, 20))


class Readers:
    """Threads that ask the newest snapshot all the time, and compare what it says."""

    def __init__(self, lake: Path, count: int) -> None:
        self.holder = SnapshotHolder(lake, load_settings()[0])
        self.written: dict[bytes, float] = {}
        self.served: dict[bytes, float] = {}
        self.faults: list[str] = []
        self.reads = self.last = 0
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self._read) for _ in range(count)]

    def _read(self) -> None:
        seen = -1
        while not self.is_over.is_set():
            try:
                reader = self.holder.reader(timeout_ms=60_000)
            except LakeNotFound:
                time.sleep(0.05)
                continue
            number = reader.snapshot.number
            if number == seen:
                time.sleep(0.01)
                continue
            seen = number
            with self.holder._open(number).connection.cursor() as cursor:
                rows = cursor.execute(MASTER).fetchall()
            now_s = time.monotonic()
            self.reads += 1
            self.last = reader.snapshot.last_mc_seqno
            self._compare(number, rows, reader.snapshot.ranges, now_s)

    def _compare(
        self,
        number: int,
        rows: list[tuple[int, bytes, bytes]],
        ranges: tuple[tuple[int, int], ...],
        now_s: float,
    ) -> None:
        told = [seqno for first, last in ranges for seqno in range(first, last + 1)]
        if [row[0] for row in rows] != told:
            self.faults.append(f"snapshot {number}: rows are not those of {ranges}")
        for before, after in pairwise(rows):
            if before[0] + 1 == after[0] and after[2] != before[1]:
                self.faults.append(f"snapshot {number}: block {after[0]} hangs on no block")
        for _seqno, root_hash, _before in rows:
            if root_hash not in self.written:
                self.faults.append(f"snapshot {number}: {root_hash.hex()} was never written")
            self.served.setdefault(root_hash, now_s)


def run(options: argparse.Namespace) -> dict[str, object]:
    """Run it all, and return the figures."""
    dice = random.Random(options.seed)  # noqa: S311 - no secret
    shutil.rmtree(options.folder, ignore_errors=True)
    lake = options.folder / "lake"
    lake.mkdir(parents=True)
    db_dir = options.node
    if db_dir.is_file():
        db_dir = unpack(db_dir, options.folder / "genuine")
    with closing(open_node(db_dir)) as source:
        plain = [source.read_bundle(at) for at in range(1, source.last_mc_seqno() + 1)]
    node = SimulatedNode(options.folder / "db", slices=SLICES)
    clock = Clock(options.folder)
    tail = Tail(clock.wrap(name_command(Origin(node.db_dir), lake)), most_pause_s=1)
    faults = Faults(node, tail, clock, dice)
    readers = Readers(lake, options.readers)
    chain: list[McBundle] = plain
    due = sorted(dice.sample(range(1, options.blocks), min(options.faults, options.blocks - 1)))
    kinds: dict[str, int] = {}
    tail.start()
    for thread in readers.threads:
        thread.start()
    with closing(node):
        for done in range(options.blocks):
            if node.last == len(chain) or (node.last > BACK_MC_BLOCKS and dice.random() < 0.005):
                oldest = min(node.writer.open_slices) + 1
                after = max(oldest, node.last - dice.randint(1, BACK_MC_BLOCKS))
                node.roll_back(after)
                chain = fork(node.written + plain[after:], after, salt=done + 1)
                kinds["roll-back"] = kinds.get("roll-back", 0) + 1
            node.write(chain[node.last])
            readers.written[node.written[-1].blocks[0].id.root_hash] = time.monotonic()
            while due and due[0] <= done:
                due.pop(0)
                kind = dice.choice([*faults.kinds, "slice removed"])
                if kind == "slice removed":
                    kind = remove_slice(node, readers.last)
                else:
                    faults.kinds[kind]()
                kinds[kind] = kinds.get(kind, 0) + 1
            time.sleep(options.pause_ms / 1000)
        wait_for_end(lake, node, options.patience_s)
        readers.is_over.set()
        for thread in readers.threads:
            thread.join()
        tail.stop()
        equal = compare(lake, node, options.folder)
    delays = [
        readers.served[one] - at for one, at in readers.written.items() if one in readers.served
    ]
    return {
        "blocks": options.blocks,
        "faults": kinds,
        "reads": readers.reads,
        "wrong": readers.faults[:5],
        "equal": equal,
        "snapshots": open_snapshot(lake).number,
        "undoings": len(open_snapshot(lake).undoings),
        "damage": len(verify_lake(lake).damage),
        "median_ms": round(statistics.median(delays) * 1000),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def remove_slice(node: SimulatedNode, served: int) -> str:
    """Let the node prune its oldest slice if nobody needs it any more; return what happened."""
    kept = sorted(node.writer.open_slices)
    if len(kept) > 1 and kept[1] + BACK_MC_BLOCKS < min(node.last, served):
        node.prune(kept[0])
        return "slice removed"
    node.compact()
    return "compact"


def wait_for_end(lake: Path, node: SimulatedNode, patience_s: float) -> None:
    """Wait until the lake ends with the node's newest block."""
    wanted = node.written[-1].blocks[0].id.root_hash
    sql = "select root_hash from blocks where workchain = -1 order by seqno desc limit 1"
    deadline_s = time.monotonic() + patience_s
    while time.monotonic() < deadline_s:
        if ask(lake, sql)[0][0] == wanted:
            return
        time.sleep(0.5)
    raise AssertionError("the lake did not come to the end of the node's chain")


def compare(lake: Path, node: SimulatedNode, folder: Path) -> bool:
    """Tell whether the lake has the rows of one that was made at once."""
    settings = load_settings()[0]
    whole = SimulatedNode(folder / "whole", slices=(0,))
    with closing(whole):
        for bundle in node.written:
            whole.write(bundle)
        with closing(open_node(whole.db_dir)) as source:
            ingest(source, folder / "reference", Span(1, node.last), settings)
    return all(
        ask(lake, f"select * exclude (day) from {name} order by all")  # noqa: S608 - ours
        == ask(folder / "reference", f"select * exclude (day) from {name} order by all")  # noqa: S608
        for name in TABLES
    )


def main(arguments: list[str] | None = None) -> int:
    """Read the options, run, print the figures; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description="Follow a node to which everything happens.")
    parser.add_argument("node", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=5000)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--pause-ms", type=int, default=100)
    parser.add_argument("--patience-s", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    found = run(parser.parse_args(arguments))
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return int(bool(found["wrong"]) or not found["equal"] or bool(found["damage"]))


if __name__ == "__main__":
    sys.exit(main())
