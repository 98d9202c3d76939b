"""Forks writers to be killed, so that imports are paid once and not at every kill.

Reads lines ``LAKE CRASH_AT DELAY_MS`` from stdin; for each it forks a child that sweeps the lake
and commits ``RANGES``, and kills it at the named point (``-`` for none) or after DELAY_MS (0 for
never), then prints ``killed`` or ``ended``.
"""

from pathlib import Path
from unittest import mock

from tests.lake.killed import serve_orders
from tests.lake.rows import commit_rows
from tonlake.lake.commit import commit
from tonlake.lake.errors import RangeOverlap
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.settings import LakeSettings

RANGES = [(1, 5), (6, 8), (9, 20), (21, 21)]
FEW_TABLES = ("blocks", "transactions", "state_cells", "transaction_traces", "wallets")


def commit_ranges(lake: Path) -> None:
    """Commit those of the ranges that the lake does not have."""
    for first, last in RANGES:
        try:
            commit_rows(lake, first, last, rows=3, tables=FEW_TABLES)
        except RangeOverlap:
            continue


def bring(lake: Path) -> None:
    """Sweep the lake, and commit the missing ranges."""
    sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
    commit_ranges(lake)


if __name__ == "__main__":
    mock.patch.object(commit, "CHECKPOINT_COMMITS", 2).start()
    serve_orders(bring)
