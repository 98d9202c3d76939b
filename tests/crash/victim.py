"""Forks ingests to be killed, so that imports are paid once and not at every kill.

``python -m tests.crash.victim NODE [tvm]`` reads lines ``LAKE CRASH_AT DELAY_MS`` from stdin. For
each it forks a child that ingests part of the node into LAKE, to be killed at the named point
(``-`` for none) or after DELAY_MS (0 for never), and then prints ``killed`` or ``ended``. With
``days``, NODE is a data set of two days. Contracts are detected by get-methods only with ``tvm``.
"""

import sys
from functools import partial
from pathlib import Path
from unittest import mock

from tests.commands import run
from tests.ingest.whole import ingest_node
from tests.lake.killed import serve_orders
from tests.patience import compose
from tonlake.ingest.dataset import pipeline
from tonlake.ingest.derive.contract import derivation
from tonlake.ingest.derive.contract.session import GetMethodSession
from tonlake.lake.commit import commit

SETTINGS = compose(
    ingest={"mc_blocks_per_commit": 8, "mc_blocks_per_chunk": 8}, lake={"orphan_grace_s": 0}
)


def bring(node: Path, lake: Path) -> None:
    """Ingest the node's first masterchain blocks in small commits."""
    ingest_node(node, lake, SETTINGS, 1, 32)


def bring_days(dataset: Path, lake: Path) -> None:
    """Run the command on all days of a data set, with small commits."""
    grace = {"TONLAKE_LAKE_ORPHAN_GRACE_S": "0", "TONLAKE_INGEST_MC_BLOCKS_PER_COMMIT": "8"}
    with mock.patch.object(pipeline, "_CHUNK", 8):
        found = ("--dataset", dataset, "--days", "2026-11-21..2026-11-22")
        done = run("ingest", *found, "--lake", lake, env=grace)
    assert done.exit_code == 0, done.output


def main() -> None:
    """Serve commands until stdin ends."""
    work = partial(bring_days if "days" in sys.argv[2:] else bring, Path(sys.argv[1]))
    mock.patch.object(commit, "CHECKPOINT_COMMITS", 2).start()
    if "tvm" not in sys.argv[2:]:
        mock.patch.object(
            derivation,
            "GetMethodSession",
            lambda world, network, _tvm, **rest: GetMethodSession(world, network, None, **rest),
        ).start()
    serve_orders(work)


if __name__ == "__main__":
    main()
