"""Rows of traces: all of theirs, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tonlake.ingest.derive.action import gathering
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Place
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import MESSAGES, TRACES, TRANSACTIONS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("filtered_rows", [0, 1 << 40])
def test_rows_of_other_traces_are_left_out(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch, filtered_rows: int
) -> None:
    """A trace may span a day of blocks, of which only its own rows fit into memory."""
    monkeypatch.setattr(gathering, "_FILTERED_ROWS", filtered_rows)
    state = read_state(demo_lake)
    traces = pa.concat_tables(
        read_rows(demo_lake, file) for file in state.files if file.table == TRACES.name
    )
    traces = traces.filter(pc.equal(traces["state"], "complete")).sort_by("transactions")
    last = traces.slice(traces.num_rows - 1)
    rows = gathering.gather_sources(demo_lake, state, last, {}, Place(0, 0, ""))
    (count,) = last["transactions"].to_pylist()
    assert rows.take(TRANSACTIONS.name).num_rows == count > 1
    assert len(rows.take(MESSAGES.name)["tx_hash"].unique()) == count
