"""4,000 pages with combined filters on a network's lake: the index gives the same as SQL.

``pytest -m long -s tests/queries/test_combinations.py`` prints the cost of the pages.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.queries.test_message_pages import compare
from tests.queries.test_span import KEYS, MOVES, compare_pages, list_moves
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

OF_MESSAGES = ("v3/messages", "v3/transaction_keys_by_message")
NAMES = (*sorted(KEYS), *OF_MESSAGES)
DRAWS = 4_000 // len(NAMES) + 1

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", NAMES)
def test_pages_of_a_network(ingest_network: Callable[[str], Path], name: str) -> None:
    network_lake = ingest_network("node/localnet-db")
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
