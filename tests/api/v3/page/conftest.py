"""A question to the demo lake, asked without a service."""

from pathlib import Path

import pytest

from tests.patience import compose
from tonlake.api.request.call import Call
from tonlake.api.request.snapshot import SnapshotHolder


@pytest.fixture(scope="module", params=[50_000, 0], ids=["look-ups", "queries"])
def call(demo_lake: Path, request: pytest.FixtureRequest) -> Call:
    """A question to the demo lake, answered by look-ups and by queries."""
    settings = compose(lake={"index_memory_rows": request.param})
    reader = SnapshotHolder(demo_lake, settings).reader(timeout_ms=0)
    return Call(settings, reader)
