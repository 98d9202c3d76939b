"""What can happen to a node and to the one who follows it."""

from __future__ import annotations

import os
import resource
import signal
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from api.tail import Tail
    from tests.ingest.simulator.node import SimulatedNode

DAY_S = 86_400
PAUSE_S = 0.2
"""How long something lasts that passes."""

FULL_BYTES = 2048
"""No file may become larger while the disk is full."""

SHIM = Path(__file__).with_name("clock.c")


class Clock:
    """The time of day of the processes of one command; that of all others stays as it is."""

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
        """Let it go before or after the true time."""
        with self._file.open("r+b", buffering=0) as stream:
            stream.write(struct.pack("=q", seconds))


class Faults:
    """Things that happen, by name, to one node and its follower."""

    def __init__(self, node: SimulatedNode, tail: Tail, clock: Clock, dice: random.Random) -> None:
        self._node, self._tail, self._clock, self._dice = node, tail, clock, dice
        self.kinds: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "kill a child": self._kill_child,
            "torn": self._tear,
            "restart": node.restart,
            "compact": node.compact,
            "gone": self._hide,
            "clock": self._jump,
            "full disk": self._fill,
        }

    def _kill(self) -> None:
        if (pid := self._tail.pid) is not None:
            os.kill(pid, signal.SIGKILL)

    def _kill_child(self) -> None:
        """Kill a process that the follower started: a TVM, if one is there."""
        if (pid := self._tail.pid) is None:
            return
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
            for child in children.split():
                os.kill(int(child), signal.SIGKILL)

    def _tear(self) -> None:
        tail = self._node.tear(self._dice.randint(1, 300))
        time.sleep(PAUSE_S)
        self._node.mend(tail)

    def _hide(self) -> None:
        away = self._node.db_dir.with_name("away")
        self._node.db_dir.rename(away)
        time.sleep(PAUSE_S)
        away.rename(self._node.db_dir)

    def _jump(self) -> None:
        self._clock.shift(self._dice.choice((-DAY_S, 0, DAY_S, 400 * DAY_S)))

    def _fill(self) -> None:
        """Let the follower's files grow no further for a while, as on a disk without room."""
        if (pid := self._tail.pid) is None:
            return
        with suppress(ProcessLookupError):
            _soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
            time.sleep(PAUSE_S)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
