"""The world of the demo node, for tests of its contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.derive.contract.world import KnownLake, World
from tonlake.ingest.settings import IngestSections
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import list_places
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import BASE_TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from tonlake.ingest.derive.contract.stack import Cell


BASE = {table.name for table in BASE_TABLES}


@pytest.fixture(scope="package")
def demo_rows(demo_lake: Path) -> dict[str, pa.Table]:
    """Base rows of the demo lake, which has one range."""
    state = read_state(demo_lake)
    assert len(list_places(state)) == 1
    return {file.table: read_rows(demo_lake, file) for file in state.files if file.table in BASE}


class MadeWorld(World):
    """A world with additional cells of a test, by hash; they share the tree of its cells."""

    made: dict[bytes, Cell]

    def find_cell(self, root: bytes | None) -> Cell | None:
        """Return a cell that the test created or that was looked up."""
        return super().find_cell(root) if root not in self.made else self.made[root]


@pytest.fixture
def demo_world(demo_lake: Path, demo_rows: dict[str, pa.Table]) -> Iterator[MadeWorld]:
    """The demo node's chain as a single commit."""
    settings = IngestSections()
    with (
        closing(CellFinder(demo_lake, settings)) as finder,
        closing(KnownLake(demo_lake, settings)) as lake,
    ):
        world = MadeWorld(lake, read_state(demo_lake), finder, demo_rows)
        world.made = {}
        yield world
