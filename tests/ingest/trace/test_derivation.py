"""Traces in a lake: whatever the order and the borders of its commits, the same rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.trace.derivation import TRACE_TABLES, TraceFiles
from ingest.trace.rebuild import rebuild_traces
from lake.commit import commit_range
from lake.settings import Settings
from lake.snapshot import open_snapshot
from lake.verify import verify_lake
from tests.ingest.trace.forest import BLOCKS_A_DAY, Forest, forests
from tests.ingest.trace.oracle import trace_rows

if TYPE_CHECKING:
    from lake.place import Derive

ORDERS = {
    "transaction_traces": "lt, workchain, account",
    "traces": "end_lt, trace_id",
    "open_edges": "created_lt, msg_hash, direction",
}


def commit_forest(lake_dir: Path, forest: Forest, first: int, last: int, derive: Derive) -> None:
    tables = forest.tables(first, last)
    commit_range(
        lake_dir,
        tables,
        first_mc_seqno=first,
        last_mc_seqno=last,
        day=f"1970-01-{1 + first // BLOCKS_A_DAY:02}",
        source={},
        derive=derive,
    )


def read_traces(lake_dir: Path) -> dict[str, list[dict[str, Any]]]:
    connection = open_snapshot(lake_dir).connect()
    return {
        name: connection.table(name)
        .order(order)
        .project("* exclude (day)")
        .to_arrow_table()
        .to_pylist()
        for name, order in ORDERS.items()
    }


def trace_files(lake_dir: Path) -> set[str]:
    files = open_snapshot(lake_dir).files
    return {file.path for name in TRACE_TABLES for file in files[name]}


def expected_rows(forest: Forest) -> dict[str, list[dict[str, Any]]]:
    tables = forest.tables(1, forest.last)
    return trace_rows(tables["transactions"].to_pylist(), tables["messages"].to_pylist())


@st.composite
def shuffled_ranges(draw: st.DrawFn, last: int) -> list[tuple[int, int]]:
    """Draw ranges that cover the blocks 1 to last, in any order."""
    cuts = sorted(draw(st.sets(st.integers(2, last), max_size=5))) if last > 1 else []
    starts = [1, *cuts]
    return draw(st.permutations(list(zip(starts, [*(cut - 1 for cut in cuts), last], strict=True))))


@settings(deadline=None, max_examples=30)
@given(forests(), st.data())
def test_ranges_cut_and_shuffled_end_in_the_same_rows(forest: Forest, data: st.DataObject) -> None:
    ranges = data.draw(shuffled_ranges(forest.last))
    with tempfile.TemporaryDirectory() as folder:
        lake_dir = Path(folder)
        for first, last in ranges:
            commit_forest(lake_dir, forest, first, last, TraceFiles(lake_dir))
        assert read_traces(lake_dir) == expected_rows(forest)
        assert verify_lake(lake_dir).damage == []
        # Each file is a function of the base rows and the ranges, so nothing is left to rebuild.
        before = trace_files(lake_dir)
        assert rebuild_traces(lake_dir, Settings()) is None
        assert trace_files(lake_dir) == before
