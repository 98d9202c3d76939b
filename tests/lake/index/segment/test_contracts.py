"""Rows of contracts and moves round-trip through a segment, by each of their addresses."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.holdings import Holdings, commit_holdings
from tonlake.lake.index.answer.contracts import address_of
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.index import open_segments
from tonlake.lake.index.segment.contracts import INDEXED, SegmentTable, open_tables, write_contracts
from tonlake.lake.index.segment.file import SegmentFile, SegmentWriter
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

SETTINGS = LakeSettings()


def write_tables(parts: list[tuple[str, pa.Table]]) -> dict[str, SegmentTable]:
    """Write a segment with nothing else, and open it."""
    stream = io.BytesIO()
    writer = SegmentWriter(stream)
    write_contracts(writer, parts)
    writer.finish((1, 9), 0)
    tables = open_tables(SegmentFile(stream.getvalue(), "test").arrays)
    assert tables is not None
    return tables


def first_rows(rows: list[dict[str, Any]], column: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the first row of each account with each address in a column."""
    return {(*address_of(row, column), *address_of(row, "account")): row for row in reversed(rows)}


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), last=st.integers(1, 5))
def test_rows_come_back(seed: int, last: int) -> None:
    holdings = Holdings(seed)
    halves = holdings.make(1, last), holdings.make(last + 1, last + 1)
    parts = [(name, half[name]) for name in INDEXED for half in halves if half[name].num_rows]
    tables = write_tables(parts)
    for name, table in INDEXED.items():
        wanted: list[dict[str, Any]] = [row for half in halves for row in half[name].to_pylist()]
        if not wanted:
            assert name not in tables
            continue
        found = [tables[name].read(number) for number in range(len(tables[name].order))]
        assert found == wanted
        for column in table.addresses:
            for address in {row[column] for row in wanted if row[column] is not None}:
                numbers = tables[name].list_rows(column, address)
                rows = [found[number] for number in numbers if found[number][column] == address]
                having = sorted(
                    (row for row in wanted if row[column] == address),
                    key=lambda row: (row[table.order], wanted.index(row)),
                )
                if not table.moments and column != "account":
                    having = list(first_rows(having, column).values())
                    rows.sort(key=having.index)
                assert rows == having


def test_a_segment_without_contracts_has_no_tables() -> None:
    assert open_tables({}) is None
    assert write_tables([]) == {}


def test_segments_decline_contracts_that_were_rebuilt(tmp_path: Path) -> None:
    commit_holdings(tmp_path, 1, 6)
    rebuild_index(tmp_path)
    lookups = open_segments(open_snapshot(tmp_path), SETTINGS)
    assert lookups is not None
    assert lookups.list_tables("jetton_wallets")
    lookups.stale_traces = True
    with pytest.raises(Declined):
        lookups.list_tables("jetton_wallets")


def test_the_digest_of_a_segment_follows_from_the_files_of_contracts(tmp_path: Path) -> None:
    commit_holdings(tmp_path, 1, 6)
    rebuild_index(tmp_path)
    state = read_state(tmp_path)
    gone = state.by_table["nft_items"][0]
    files = tuple(file for file in state.files if file is not gone)
    snapshot = Snapshot(tmp_path, msgspec.structs.replace(state, files=files))
    lookups = open_segments(snapshot, SETTINGS)
    assert state.segments
    assert lookups is not None
    assert lookups.stale_traces
