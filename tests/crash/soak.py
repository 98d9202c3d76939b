"""A day of a lake on a virtual clock: one writer, compaction, readers, and a fault every minute.

``python -m tests.crash.soak FOLDER --hours 24``

Readers compare every snapshot with the commits, including snapshots held for most of the grace
period. Figures are printed as JSON.
"""

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import linear_regression
from typing import Any
from unittest import mock

import psutil
import pyarrow as pa

from tests.crash.disk import Died, Disk
from tests.crash.history import state_of
from tests.crash.power import Loss, Medium, restore
from tests.damage import flip_any
from tests.lake.chain import Chain, commit_made
from tonlake.lake.commit import commit
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeFull
from tonlake.lake.index.index import open_segments
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LogReader
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.schedule import maintain_once
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

MC_BLOCKS, MINUTE_S, GRACE_S = 24, 60, 3600
END_S = 10**8
"""No virtual clock runs so long, and every real one has long passed it."""

UPKEEP_EVERY, HELD_MINUTES = 8, 55
SETTINGS = LakeSettings(compact_commits=8, orphan_grace_s=GRACE_S, compact_rows=20_000)
SUMS = "select count(*), coalesce(sum(lt), 0), count(distinct hash) from transactions"
MOMENTS = 120
"""Operations of one minute's work at which it may go wrong."""

FAULTS = ("death", "full", "power", "bit")


class Day:
    """The lake, its expected contents, and the clock."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.before = folder / "disk", folder / "before"
        self.lake = self.folder / "lake"
        self.dice = random.Random(seed)  # noqa: S311 - a repeatable choice
        self.chain = Chain(seed, accounts=4)
        self.minute = 0
        self.expected: dict[int, tuple[int, int, int]] = {0: (0, 0, 0)}
        self.held: list[tuple[int, Snapshot]] = []
        self.faults = dict.fromkeys(FAULTS, 0)
        self.coming: list[str] = []
        self.reads = self.found_bits = 0
        self.own_mib: list[tuple[float, float]] = []

    @property
    def now_s(self) -> float:
        """Seconds of the virtual clock."""
        return self.minute * MINUTE_S

    def pass_minute(self) -> None:
        """Let a minute pass, with its blocks and its fault."""
        self.minute += 1
        first = (self.minute - 1) * MC_BLOCKS + 1
        mc_range = (first, first + MC_BLOCKS - 1)
        rows = self.chain.make(*mc_range)
        count, lts, hashes = self.expected[first - 1]
        transactions = rows["transactions"]
        added = transactions.num_rows
        lts += sum(transactions["lt"].to_pylist())
        self.expected[mc_range[1]] = (count + added, lts, hashes + added)
        self.coming = self.coming or self.dice.sample(FAULTS, len(FAULTS))
        fault = self.coming.pop()
        self.faults[fault] += 1
        getattr(self, f"_meet_{fault}")(lambda: self._work(mc_range, rows))
        self._work(mc_range, rows)  # the process is restarted: there is nothing to wait for
        assert state_of(self.lake).ranges == ((1, mc_range[1]),)
        self._stamp()
        self._read()
        if self.minute % MINUTE_S == 0:
            assert verify_lake(self.lake).damage == []
            self._measure()

    def _work(self, mc_range: tuple[int, int], rows: dict[str, pa.Table]) -> None:
        """Act as a follower: sweep, commit missing ranges, maintain the lake."""
        with mock.patch("tonlake.lake.maintenance.orphan.time.time", return_value=self.now_s):
            sweep_orphans(self.lake, LakeSettings(orphan_grace_s=GRACE_S))
        last = max((last for _first, last in state_of(self.lake).ranges), default=0)
        if last < mc_range[1]:
            commit_made(self.lake, *mc_range, rows, SETTINGS)
        if self.minute % UPKEEP_EVERY == 0:
            maintain_once(LogReader(self.lake), SETTINGS)

    def _meet_death(self, work: Callable[[], None]) -> None:
        disk = Disk(self.folder, fail_at=self.dice.randrange(MOMENTS), death=True)
        with disk.watch(), suppress(Died):
            work()

    def _meet_full(self, work: Callable[[], None]) -> None:
        disk = Disk(self.folder, fail_at=self.dice.randrange(MOMENTS))
        with disk.watch(), suppress(LakeFull):
            work()

    def _meet_power(self, work: Callable[[], None]) -> None:
        """Lose unsynced data at a random moment of the work."""
        if self.lake.exists():
            shutil.copytree(self.lake, self.before / "lake", copy_function=os.link)
        medium = Medium.of_folder(self.before)
        disk = Disk(self.folder, fail_at=self.dice.randrange(MOMENTS), death=True)
        with disk.watch(), suppress(Died):
            work()
        for operation in disk.operations:
            medium.do(operation)
        restore(self.folder, medium.lose(Loss("some", "some", self.dice)))
        shutil.rmtree(self.before / "lake", ignore_errors=True)

    def _meet_bit(self, work: Callable[[], None]) -> None:
        """Flip a bit of a live file, which the next reader must detect; then repair it."""
        work()
        state = state_of(self.lake)
        file = self.dice.choice((*state.files, *state.segments))
        path = self.lake / file.path
        sound, facts = path.read_bytes(), path.stat()
        path.write_bytes(flip_any(sound, self.dice))
        found = find_damage(self.lake, [file], trust_earlier=True)
        self.found_bits += [error.file for error in found] == [file.path]
        path.write_bytes(sound)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    def _stamp(self) -> None:
        """Set the mtime of new files from the virtual clock."""
        for folder in (self.lake, *self.lake.glob("*"), *self.lake.glob("*/day=*")):
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file() and entry.stat().st_mtime > END_S:
                        os.utime(entry, (self.now_s, self.now_s))

    def _read(self) -> None:
        """Compare the newest snapshot, and those held long enough, with the commits."""
        newest = open_snapshot(self.lake)
        self._compare(newest)
        if self.minute % 10 == 0:
            self.held.append((self.minute, newest))
        while self.held and self.held[0][0] + HELD_MINUTES <= self.minute:
            self._compare(self.held.pop(0)[1])

    def _compare(self, snapshot: Snapshot) -> None:
        assert not snapshot.damaged, snapshot.damaged
        with connect(snapshot, tables=("transactions",)) as rows:
            found = rows.execute(SUMS).fetchone()
        assert found == self.expected[snapshot.last_mc_seqno], snapshot.number
        if self.minute % 10 == 0:
            assert open_segments(snapshot, SETTINGS) is not None
        self.reads += 1

    def _measure(self) -> None:
        used = psutil.Process().memory_info()
        mib = (used.rss - used.shared) / (1 << 20)  # mapped segments aside
        self.own_mib.append((self.minute / MINUTE_S, mib))

    def describe(self) -> dict[str, Any]:
        """Return the figures."""
        later = self.own_mib[len(self.own_mib) // 4 :]
        slope = linear_regression(*zip(*later, strict=True)).slope if len(later) > 1 else 0.0
        return {
            "virtual_hours": round(self.minute / MINUTE_S, 2),
            "faults": {kind: count for kind, count in self.faults.items() if count},
            "flips_found": self.found_bits,
            "commits": state_of(self.lake).number,
            "transactions": self.expected[self.minute * MC_BLOCKS][0],
            "reads": self.reads,
            "files": sum(path.is_file() for path in self.lake.rglob("*")),
            "open_files": psutil.Process().num_fds(),
            "memory_mib_an_hour": round(slope, 2),
        }


def _sync_nothing(_descriptor: int) -> None:
    """Replace ``os.fsync``."""


def main(arguments: list[str] | None = None) -> int:
    """Read the options, let the time pass, print the figures."""
    parser = argparse.ArgumentParser(description="Let a day of a lake pass, with its faults.")
    parser.add_argument("folder", type=lambda text: Path(text).absolute())
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    shutil.rmtree(options.folder, ignore_errors=True)
    for name in ("disk", "before"):
        (options.folder / name).mkdir(parents=True)
    day, began_s = Day(options.folder, options.seed), time.monotonic()
    # The layer above knows what a power loss destroys; a mock would keep every call.
    with (
        mock.patch.object(commit, "CHECKPOINT_COMMITS", 16),
        mock.patch("os.fsync", _sync_nothing),
    ):
        while day.minute < options.hours * MINUTE_S:
            day.pass_minute()
    found = day.describe() | {"took_s": round(time.monotonic() - began_s)}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
