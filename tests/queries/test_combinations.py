"""4,000 pages with combined filters on a network's lake: the index gives the same as SQL.

``pytest -m long -s tests/queries/test_combinations.py`` prints the cost of the pages.
"""

import gc
from pathlib import Path
from random import Random

import pytest

from tests.ingest.whole import ingest_node
from tests.made.blocks import NETWORK_NODE, unpack_node
from tests.queries.test_message_pages import compare
from tests.queries.test_span import KEYS, MOVES, compare_pages, list_moves
from tonlake.api.settings import Settings
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

OF_MESSAGES = ("v3/messages", "v3/transaction_keys_by_message")
NAMES = (*sorted(KEYS), *OF_MESSAGES)
DRAWS = 4_000 // len(NAMES) + 1

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not NETWORK_NODE.exists(), reason=f"no file {NETWORK_NODE}"),
]


@pytest.fixture(scope="module")
def network_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the lake of a whole network."""
    folder = tmp_path_factory.mktemp("network")
    ingest_node(unpack_node(NETWORK_NODE, folder / "node"), folder / "lake", Settings(), 1)
    return folder / "lake"


@pytest.mark.parametrize("name", NAMES)
def test_pages_of_a_network(network_lake: Path, name: str) -> None:
    if name in MOVES and not list_moves(connect(open_snapshot(network_lake)), name):
        pytest.skip("the network has none")
    gc.collect()
    gc.freeze()  # as the service does with existing blocks before the first request
    try:
        if name in OF_MESSAGES:
            cpu_ms = compare(network_lake, Random(name), DRAWS, name)  # noqa: S311 - repeatable
        else:
            cpu_ms = [each.cpu_ms for each in compare_pages(network_lake, name, DRAWS)]
    finally:
        gc.unfreeze()
    cpu_ms.sort()
    shares = {share: cpu_ms[len(cpu_ms) * share // 100] for share in (50, 90, 99)}
    figures = ", ".join(f"p{share} {ms:.2f} ms" for share, ms in shares.items())
    print(f"{name}: {len(cpu_ms)} pages, {figures} of CPU")  # noqa: T201 - asked for by -s
