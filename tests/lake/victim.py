"""A process that forks writers to be killed: imports are paid once, not once a kill.

Reads lines ``LAKE CRASH_AT DELAY_MS`` from stdin; for each it forks a child that sweeps the lake
and commits ``RANGES``, and kills it at the named point (``-`` for none) or after DELAY_MS (0 for
never), then prints ``killed`` or ``ended``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from lake.crash import VARIABLE
from lake.errors import RangeOverlap
from lake.orphan import sweep_orphans
from lake.settings import Settings
from tests.lake.rows import commit_rows

RANGES = [(1, 5), (6, 8), (9, 20), (21, 21)]
FEW_TABLES = ("blocks", "transactions", "state_cells", "transaction_traces", "wallets")
SETTINGS = msgspec.structs.replace(Settings(), checkpoint_commits=2)


def commit_ranges(lake: Path) -> None:
    """Commit those of the ranges that the lake does not have."""
    for first, last in RANGES:
        try:
            commit_rows(lake, first, last, settings=SETTINGS, rows=3, tables=FEW_TABLES)
        except RangeOverlap:
            continue


def run_child(lake: Path, crash_at: str, delay_ms: float) -> str:
    """Fork a writer, kill it as told, and say how it ended."""
    child = os.fork()
    if child == 0:
        if crash_at != "-":
            os.environ[VARIABLE] = crash_at
        sweep_orphans(lake, 0)
        commit_ranges(lake)
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
    for line in sys.stdin:
        lake, crash_at, delay_ms = line.split()
        print(run_child(Path(lake), crash_at, float(delay_ms)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
