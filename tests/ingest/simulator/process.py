"""Runs a simulated node in a separate process, which can be killed at any moment.

``python -m tests.ingest.simulator.process FOLDER`` reads calls from its standard input.
"""

import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.ingest.simulator.node import SimulatedNode
from tonlake.ingest.blocks import McBundle

REMEMBERED_MC_BLOCKS = 500
"""Number of newest blocks that a restarted node gets; older ones are never undone."""


class NodeProcess:
    """Controls a simulated node in another process; a killed one is restarted."""

    def __init__(self, db_dir: Path, slices: Sequence[int]) -> None:
        """Start the process."""
        self.db_dir = db_dir
        self.written: list[McBundle] = []
        self.open_slices: list[int] = []
        self._slices = tuple(slices)
        self._start(None)

    @property
    def last(self) -> int:
        """The newest masterchain block that is complete."""
        return len(self.written)

    def write(self, bundle: McBundle, *, killed_after_s: float | None = None) -> float:
        """Write a bundle; return the time when it was complete.

        Args:
            bundle: The next masterchain block and what it commits.
            killed_after_s: Kill the process so many seconds after it began, and go on in another.
        """
        if killed_after_s is not None:
            self._send("write", bundle)
            time.sleep(killed_after_s)
            self._process.kill()
            self._end()
            self._start(bundle)
        moment_s: float = self.call("finish", bundle)
        self.written.append(bundle)
        return moment_s

    def roll_back(self, after: int) -> None:
        """Undo every masterchain block after ``after``."""
        self.call("roll_back", after)
        del self.written[after:]

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the node."""
        self._send(name, *arguments)
        self.open_slices, result = pickle.load(self._stdout)  # noqa: S301 - of our own process
        return result

    def close(self) -> None:
        """Stop the node."""
        self.call("close")
        self._end()

    def _start(self, under_way: McBundle | None) -> None:
        command = [sys.executable, "-m", __name__, str(self.db_dir)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        newest = self.written[-REMEMBERED_MC_BLOCKS:]
        forgotten = [None] * (self.last - len(newest))
        self.call("open", self._slices, [*forgotten, *newest], under_way)

    def _end(self) -> None:
        with suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()
        self._process.wait()

    def _send(self, name: str, *arguments: object) -> None:
        pickle.dump((name, arguments), self._stdin)
        self._stdin.flush()


class Playing:
    """The node in the child process."""

    def __init__(self, db_dir: Path) -> None:
        """Take its folder; nothing is opened."""
        self._db_dir = db_dir
        self.node: SimulatedNode

    def open(
        self, slices: tuple[int, ...], written: list[McBundle | None], under_way: McBundle | None
    ) -> None:
        """Begin, or continue where another process ended."""
        self.node = SimulatedNode(self._db_dir, slices=slices, written=written)
        if under_way is not None:
            self.node.recover(under_way)

    def finish(self, bundle: McBundle) -> float:
        """Write a bundle unless it is complete already; return the time when it was complete."""
        if self.node.last < bundle.mc_seqno:
            self.node.write(bundle)
        return time.monotonic()

    def run(self) -> None:
        """Execute one call."""
        while True:
            try:
                name, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - of our own process
            except EOFError:
                return
            done = getattr(self if hasattr(self, name) else self.node, name)(*arguments)
            pickle.dump((sorted(self.node.writer.open_slices), done), sys.stdout.buffer)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    Playing(Path(sys.argv[1])).run()
