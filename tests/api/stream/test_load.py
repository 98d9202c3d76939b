"""Five hundred clients and ten commits a second, and the server killed in between."""

import sys
from pathlib import Path

import msgspec
import pytest

from tests.api.stream.clients import make_lake, measure

CLIENTS, LAST_BLOCK = 500, 60

pytestmark = pytest.mark.long


def test_every_event_once_and_in_order(demo_node: Path, tmp_path: Path) -> None:
    blocks = make_lake(demo_node, tmp_path / "blocks", LAST_BLOCK)
    figures = measure(blocks, tmp_path / "lake", CLIENTS)
    sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
    assert figures["wrong"] == []
    assert figures["events sent"] > CLIENTS * LAST_BLOCK
    assert figures["connections"] >= 2 * CLIENTS, "the server was not missed"
