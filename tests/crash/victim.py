"""Forks ingests to be killed, so that imports are paid once and not at every kill.

``python -m tests.crash.victim NODE [tvm]`` reads lines ``LAKE CRASH_AT DELAY_MS`` from stdin. For
each it forks a child that ingests part of the node into LAKE, to be killed at the named point
(``-`` for none) or after DELAY_MS (0 for never), and then prints ``killed`` or ``ended``.

Contracts are detected by their data alone, unless ``tvm`` is given: a TVM process would have to be
started for each of the many kills.
"""

import sys
from functools import partial
from pathlib import Path
from unittest import mock

from tests.ingest.whole import ingest_node
from tests.lake.killed import serve_orders
from tests.patience import compose
from tonlake.ingest.derive.contract import derivation
from tonlake.ingest.derive.contract.program import AnswerCache
from tonlake.ingest.derive.contract.session import GetMethodSession
from tonlake.ingest.derive.contract.world import Network, World
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.lake.commit import commit

SETTINGS = compose(
    ingest={"mc_blocks_per_commit": 8, "mc_blocks_per_chunk": 8}, lake={"orphan_grace_s": 0}
)


def ask_data_alone(
    world: World,
    network: Network,
    _tvm: TvmPool | None,
    *,
    cache: AnswerCache | None = None,
) -> GetMethodSession:
    """Create a session that never uses the TVM."""
    return GetMethodSession(world, network, None, cache=cache)


def bring(node: Path, lake: Path) -> None:
    """Ingest the node's first masterchain blocks in small commits."""
    ingest_node(node, lake, SETTINGS, 1, 32)


def main() -> None:
    """Serve commands until stdin ends."""
    node = Path(sys.argv[1])
    mock.patch.object(commit, "CHECKPOINT_COMMITS", 2).start()
    if "tvm" not in sys.argv[2:]:
        mock.patch.object(derivation, "GetMethodSession", ask_data_alone).start()
    serve_orders(partial(bring, node))


if __name__ == "__main__":
    main()
