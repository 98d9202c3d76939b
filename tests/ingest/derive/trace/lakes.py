"""Lakes of generated chains, and the contents of their trace tables."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.ingest.derive.trace.forest import BLOCKS_A_DAY, Forest
from tests.ingest.derive.trace.oracle import trace_rows
from tests.lake.chain import commit_made
from tonlake.ingest.derive.stages import derive_in_order
from tonlake.ingest.derive.trace import TRACE_TABLES, TraceFiles
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import Commit

ORDERS = {
    "transaction_traces": "lt, workchain, account",
    "traces": "end_lt, trace_id",
    "open_edges": "created_lt, msg_hash, direction",
}


def commit_forest(
    lake_dir: Path, forest: Forest, first: int, last: int, traces: TraceFiles | None
) -> Commit:
    day = f"1970-01-{1 + first // BLOCKS_A_DAY:02}"
    derive = derive_in_order({} if traces is None else {"traces": traces})
    return commit_made(lake_dir, first, last, forest.tables(first, last), day=day, derive=derive)


def read_traces(lake_dir: Path) -> dict[str, list[dict[str, Any]]]:
    connection = connect(open_snapshot(lake_dir), statement=", ".join(ORDERS))
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


def long_forest() -> Forest:
    """A trace through blocks 1 to 6, one transaction in each, and one more in the last block."""
    forest = Forest(6)
    sent = forest.add(1, forest.make_arrival("ext"), ["int"])
    for mc_seqno in range(2, 7):
        sent = forest.add(mc_seqno, sent[0], ["int"] if mc_seqno < 6 else [])
    forest.add(6, forest.make_arrival("tick"))
    return forest


def states(lake_dir: Path) -> list[tuple[str, int]]:
    return [(row["state"], row["transactions"]) for row in read_traces(lake_dir)["traces"]]
