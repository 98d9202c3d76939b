"""Faults of a node and of its follower."""

from __future__ import annotations

import os
import resource
import signal
import struct
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.ingest.simulator.service import Service

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from tests.ingest.simulator.process import NodeProcess

DAY_S = 86_400
PAUSE_S = 0.2
"""How long something lasts that passes."""

BACK_MC_BLOCKS = 60
"""A node goes back by no more than this."""

MAX_WRITING_S = 0.01
"""It takes about so long to write a masterchain block and what it commits."""

FULL_BYTES = 2048
"""No file may become larger while the disk is full."""

SHIM = Path(__file__).with_name("clock.c")


class Clock:
    """The clock of the processes of one command; other processes are not affected."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "clock.so", folder / "clock"
        self._file.write_bytes(bytes(8))
        command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]
        subprocess.run([*command, str(self._library), str(SHIM)], check=True)

    def wrap(self, command: Sequence[str]) -> list[str]:
        """Return a command whose processes have this clock."""
        names = {"LD_PRELOAD": self._library, "CLOCK_SHIFT_FILE": self._file}
        return ["/usr/bin/env", *(f"{name}={path}" for name, path in names.items()), *command]

    def shift(self, seconds: int) -> None:
        """Shift it from the true time."""
        with self._file.open("r+b", buffering=0) as stream:
            stream.write(struct.pack("=q", seconds))


class Faults:
    """Faults, by name, of one node and of the service that follows it."""

    def __init__(
        self, node: NodeProcess, service: Service, clock: Clock, dice: random.Random
    ) -> None:
        self._node, self._service, self._clock, self._dice = node, service, clock, dice
        self.dies_in_s: float | None = None
        """The node's process is to be killed so long after it begins to write the next block."""
        self.kinds: dict[str, Callable[[], None]] = {
            "kill -9 of the server": service.kill,
            "kill -9 of the follower": self._kill,
            "kill -9 of a process of the follower": self._kill_child,
            "kill -9 of the node while it writes": self._kill_node,
            "package torn and written again": self._tear,
            "restart of the node": lambda: node.call("restart"),
            "RocksDB compaction": lambda: node.call("compact"),
            "folder of the node away": self._hide,
            "clock jump": self._jump,
            "full disk": self._fill,
            "slice removed": self._remove_slice,
        }
        self.happened: Counter[str] = Counter()
        self.served = 0
        """The newest masterchain block that readers have got."""

    def let_one_happen(self) -> None:
        """Inject a random fault, and count it."""
        kind = self._dice.choice(list(self.kinds))
        if kind == "slice removed" and not self._may_remove_slice():
            kind = "RocksDB compaction"
        self.kinds[kind]()
        self.happened[kind] += 1

    def _kill(self) -> None:
        if (pid := self._service.follower) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _kill_child(self) -> None:
        """Kill a process that the follower started: a TVM, if one is running."""
        if (pid := self._service.follower) is not None:
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process(pid).children():
                    child.kill()

    def _kill_node(self) -> None:
        self.dies_in_s = self._dice.uniform(0, MAX_WRITING_S)

    def _may_remove_slice(self) -> bool:
        """Whether the oldest slice is no longer needed, even to go back."""
        kept = self._node.open_slices
        newest = min(self._node.last, self.served)
        return len(kept) > 1 and kept[1] + BACK_MC_BLOCKS < newest

    def _remove_slice(self) -> None:
        self._node.call("prune", self._node.open_slices[0])

    def _tear(self) -> None:
        tail = self._node.call("tear", self._dice.randint(1, 300))
        time.sleep(PAUSE_S)
        self._node.call("mend", tail)

    def _hide(self) -> None:
        away = self._node.db_dir.with_name("away")
        self._node.db_dir.rename(away)
        time.sleep(PAUSE_S)
        away.rename(self._node.db_dir)

    def _jump(self) -> None:
        self._clock.shift(self._dice.choice((-DAY_S, 0, DAY_S, 400 * DAY_S)))

    def _fill(self) -> None:
        """Limit the size of the follower's files for a while, as on a full disk."""
        if (pid := self._service.follower) is None:
            return
        with suppress(ProcessLookupError):
            _soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
            time.sleep(PAUSE_S)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
