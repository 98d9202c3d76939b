"""Runs a simulated node in a separate process, which can be killed at any moment."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.ingest.simulator.node import SimulatedNode
from tonlake.ingest.blocks import McBundle

REMEMBERED_MC_BLOCKS = 500
"""Number of newest blocks that a restarted node gets; older ones are never undone."""


def start(work: Callable[..., None], *given: object) -> tuple[BaseProcess, Connection]:
    """Start a process that works with its end of a pipe; return it with the other end."""
    context = get_context("spawn")
    calls, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *given))
    process.start()
    theirs.close()
    return process, calls


class NodeProcess:
    """Controls a simulated node in another process; a killed one is restarted."""

    def __init__(self, db_dir: Path, slices: Sequence[int]) -> None:
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
        """Write a bundle, maybe killed meanwhile and continued; return when it was complete."""
        if killed_after_s is not None:
            self._calls.send(("write", (bundle,)))
            time.sleep(killed_after_s)
            self._process.kill()
            self._process.join()
            self._start(bundle)
        moment_s: float = self.call("finish", bundle)
        self.written.append(bundle)
        return moment_s

    def roll_back(self, after: int) -> None:
        """Undo every masterchain block after ``after``."""
        self.call("roll_back", after)
        del self.written[after:]

    def call(self, name: str, *arguments: Any) -> Any:
        self._calls.send((name, arguments))
        self.open_slices, result = self._calls.recv()
        return result

    def close(self) -> None:
        self._calls.close()
        self._process.join()

    def _start(self, under_way: McBundle | None) -> None:
        newest = self.written[-REMEMBERED_MC_BLOCKS:]
        written = [*[None] * (self.last - len(newest)), *newest]
        self._process, self._calls = start(play, self.db_dir, self._slices, written, under_way)
        self.open_slices, _ = self._calls.recv()


def play(
    calls: Connection,
    db_dir: Path,
    slices: tuple[int, ...],
    written: list[McBundle | None],
    under_way: McBundle | None,
) -> None:
    """Begin a node, or continue where another process ended, and execute calls of its methods."""
    with closing(SimulatedNode(db_dir, slices=slices, written=written)) as node, suppress(EOFError):
        if under_way is not None:
            node.recover(under_way)
        done: object = None
        while True:
            calls.send((sorted(node.writer.open_slices), done))
            name, arguments = calls.recv()
            done = finish(node, *arguments) if name == "finish" else getattr(node, name)(*arguments)


def finish(node: SimulatedNode, bundle: McBundle) -> float:
    """Write a bundle unless it is complete already; return the time when it was complete."""
    if node.last < bundle.mc_seqno:
        node.write(bundle)
    return time.monotonic()
