"""Traces of genuine networks: complete except for messages in flight at either end of the lake."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.derive.trace.lakes import read_traces, shuffled_ranges
from tests.lake.chain import commit_made
from tonlake.ingest.derive.stages import derive_in_order
from tonlake.ingest.derive.trace import TraceFiles
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import TABLES

FAULTS = """
with in_flight as (
    select tx_hash
    from messages as sent
    where
        direction = 'out'
        and kind = 'int'
        and not exists (
            select 1
            from messages as arrived
            where arrived.direction = 'in' and arrived.msg_hash = sent.msg_hash
        )
),

begun_before as (
    select hash as tx_hash
    from transaction_traces
    where edge = 'ord' and parent_hash is null
),

open_ends as (
    select distinct trace_id
    from transaction_traces
    where
        hash in (select tx_hash from in_flight)
        or hash in (select tx_hash from begun_before)
),

incomplete as (
    select trace_id
    from traces
    where state <> 'complete'
)

select 'traces', (select count(*) from transactions)
    - (select count(distinct hash) from transaction_traces semi join traces using (trace_id))
union all
select 'sizes', count(*)
from (select trace_id, count(*) as own from transaction_traces group by trace_id)
full join traces using (trace_id)
where own is distinct from transactions
union all
select 'pending', (select count(*) from in_flight)
    - (select coalesce(sum(pending_messages), 0)::bigint from traces)
union all
select 'incomplete', (select count(*) from open_ends anti join incomplete using (trace_id))
    + (select count(*) from incomplete anti join open_ends using (trace_id))
"""


@pytest.fixture(scope="module")
def demo_tables(demo_lake: Path) -> dict[str, pa.Table]:
    """All rows of the demo node's network."""
    names = ("blocks", "transactions", "messages")
    connection = connect(open_snapshot(demo_lake), statement=", ".join(names))
    return {
        name: pa.table(
            connection.table(name).to_arrow_table().select(TABLES[name].names).columns,
            schema=TABLES[name].arrow,
        )
        for name in names
    }


def commit_demo(lake_dir: Path, tables: dict[str, pa.Table], first: int, last: int) -> None:
    inside = (pc.field("mc_seqno") >= first) & (pc.field("mc_seqno") <= last)
    kept = {name: rows.filter(inside) for name, rows in tables.items()}
    derive = derive_in_order({"traces": TraceFiles(lake_dir)})
    commit_made(lake_dir, first, last, kept, derive=derive)


@settings(max_examples=3)
@given(st.data())
def test_the_demo_network_cut_and_shuffled(
    demo_lake: Path, demo_tables: dict[str, pa.Table], data: st.DataObject
) -> None:
    last = open_snapshot(demo_lake).last_mc_seqno
    ranges = data.draw(shuffled_ranges(last))
    with tempfile.TemporaryDirectory() as folder:
        for at, (first, end) in enumerate(ranges, 1):
            commit_demo(Path(folder), demo_tables, first, end)
            if at == len(ranges) // 2:
                check_traces(Path(folder))
        assert read_traces(Path(folder)) == read_traces(demo_lake)
        check_traces(Path(folder))


def check_traces(lake_dir: Path) -> None:
    """Every transaction has one trace; only messages at either end of the lake leave it open."""
    connection = connect(open_snapshot(lake_dir), statement=FAULTS)
    faults = connection.execute(FAULTS).fetchall()
    assert faults == [("traces", 0), ("sizes", 0), ("pending", 0), ("incomplete", 0)]


def test_views_join_rows_with_their_traces(demo_lake: Path) -> None:
    connection = connect(open_snapshot(demo_lake))
    for view, table in (("traced_transactions", "transactions"), ("traced_messages", "messages")):
        rows = connection.table(view)
        assert rows.count("*").fetchall() == connection.table(table).count("*").fetchall()
        assert rows.filter("trace_id is null").fetchall() == []
        assert rows.columns[-1] == "day"
    parents = connection.table("traced_transactions").filter("parent_hash is not null")
    assert parents.filter("edge <> 'ord' or trace_id = hash").fetchall() == []
