"""The demo node's lake, and a connection with all of its views."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from duckdb import DuckDBPyConnection

from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import Snapshot, open_snapshot


@pytest.fixture(scope="module")
def snapshot(demo_lake: Path) -> Snapshot:
    return open_snapshot(demo_lake)


@pytest.fixture(scope="module")
def connection(snapshot: Snapshot) -> Iterator[DuckDBPyConnection]:
    with closing(connect(snapshot)) as made:
        yield made
