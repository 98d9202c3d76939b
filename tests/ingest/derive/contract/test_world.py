"""World: cells looked up by one commit are available to the next."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.packed import pack_cell
from tonlake.ingest.derive.contract.known import KnownLake
from tonlake.ingest.derive.contract.world import CellCache, World
from tonlake.ingest.settings import IngestSections
from tonlake.lake.log.state import LogState
from tonlake.lake.schema import STATE_CELLS

SETTINGS = IngestSections()


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_cache_has_the_cells_that_were_looked_up(tmp_path: Path, *, is_kept: bool) -> None:
    builder = CellBuilder().store_uint(5, 32)
    root = builder.end()
    cell, refs = pack_cell(builder.tree, root)
    key = builder.tree.hash(root)
    row: dict[str, Any] = {"mc_seqno": 1, "hash": key, "cell": cell, "refs": refs}
    rows = {STATE_CELLS.name: pa.Table.from_pylist([row], schema=STATE_CELLS.arrow)}
    cache = CellCache.make()
    with (
        closing(KnownLake(tmp_path, SETTINGS)) as lake,
        closing(CellFinder(tmp_path, SETTINGS)) as finder,
    ):
        first = World(lake, LogState(), finder, rows, cache)
        first.load_cells([row["hash"]])
        second = World(lake, LogState(), finder, {}, cache if is_kept else None)
        second.load_cells([row["hash"]])
        one, two = first.find_cell(row["hash"]), second.find_cell(row["hash"])
        assert one is not None
        assert (two is not None) == is_kept
        assert two is None or two.bag() == one.bag()
