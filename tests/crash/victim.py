"""A process that forks ingests to be killed: imports are paid once, not once a kill.

``python -m tests.crash.victim NODE [tvm]`` reads lines ``LAKE CRASH_AT DELAY_MS`` from stdin. For
each it forks a child that ingests part of the node into LAKE, to be killed at the named point
(``-`` for none) or after DELAY_MS (0 for never), and then prints ``killed`` or ``ended``.

Contracts are found by their data alone, unless ``tvm`` is given: a process of the TVM would be
started anew for each of the many kills.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import msgspec

from ingest.contract import derivation
from ingest.contract.interview import Interview
from ingest.node.source import open_node
from ingest.pipeline import ingest
from ingest.span import Span
from lake.crash import VARIABLE
from lake.settings import Settings

if TYPE_CHECKING:
    from ingest.contract.network import Network
    from ingest.contract.world import World
    from ingest.tvm.pool import TvmPool

SETTINGS = msgspec.structs.replace(
    Settings(),
    mc_blocks_per_commit=8,
    mc_blocks_per_chunk=8,
    checkpoint_commits=3,
    orphan_grace_s=0,
)


def ask_data_alone(
    world: World, network: Network, _tvm: TvmPool | None, gas_limit: int
) -> Interview:
    """Make an interview of contracts whose data can be read."""
    return Interview(world, network, None, gas_limit)


def bring(node: Path, lake: Path) -> None:
    """Ingest the node's first masterchain blocks in small commits."""
    with closing(open_node(node)) as source:
        ingest(source, lake, Span(1, 48), SETTINGS)


def run_child(node: Path, lake: Path, crash_at: str, delay_ms: float) -> str:
    """Fork an ingest, kill it as told, and say how it ended."""
    child = os.fork()
    if child == 0:
        if crash_at != "-":
            os.environ[VARIABLE] = crash_at
        bring(node, lake)
        os._exit(0)
    if delay_ms:
        time.sleep(delay_ms / 1000)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "killed"
    return "ended" if os.WEXITSTATUS(status) == 0 else f"failed {os.WEXITSTATUS(status)}"


def main() -> None:
    """Serve orders until stdin ends."""
    node = Path(sys.argv[1])
    if "tvm" not in sys.argv[2:]:
        mock.patch.object(derivation, "Interview", ask_data_alone).start()
    for line in sys.stdin:
        lake, crash_at, delay_ms = line.split()
        print(run_child(node, Path(lake), crash_at, float(delay_ms)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
