"""Gathered rows of traces: all of theirs, and no others."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tonlake.ingest.derive.action import gathering
from tonlake.ingest.derive.action.stored import INIT_STATES, read_stored
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Place
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import MESSAGES, TRACES, TRANSACTION_TRACES, TRANSACTIONS
from tonlake.lake.schema.contract import NFT_SALES


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


@pytest.mark.parametrize("is_at_hand", [False, True])
def test_init_states_of_sales_alone(demo_lake: Path, *, is_at_hand: bool) -> None:
    """A contract deployed by a message is declared a sale."""
    state = read_state(demo_lake)
    tables = {
        name: pa.concat_tables(
            read_rows(demo_lake, file) for file in state.files if file.table == name
        )
        for name in (MESSAGES.name, TRACES.name, TRANSACTION_TRACES.name, TRANSACTIONS.name)
    }
    traces = tables[TRACES.name].filter(pc.equal(tables[TRACES.name]["state"], "complete"))
    messages = tables[MESSAGES.name]
    deploying = messages.filter(pc.is_valid(messages["init_state"]))
    sale = deploying["destination"][0]
    row = {"workchain": 0, "account": sale.as_py(), "mc_seqno": 1, "kind": "getgems_sale"}
    row |= {"details": "{}"}
    names = NFT_SALES.names
    made = pa.table(
        {name: pa.array([row.get(name)], NFT_SALES.arrow.field(name).type) for name in names}
    )
    seqnos = pc.min_max(tables[TRANSACTIONS.name]["mc_seqno"]).as_py()
    place = Place(seqnos["min"] + (not is_at_hand), seqnos["max"], "2026-01-01")
    at_hand = {**(tables if is_at_hand else {}), NFT_SALES.name: made}
    rows = gathering.gather_sources(demo_lake, state, traces, at_hand, place)
    found = rows.tables[INIT_STATES]
    expected = deploying.filter(pc.equal(deploying["destination"], sale))
    assert set(found["msg_hash"].to_pylist()) == set(expected["msg_hash"].to_pylist())
    assert set(found["init_state"].to_pylist()) == set(expected["init_state"].to_pylist())
    assert found.num_rows < deploying.num_rows
    brought = {
        message.msg_hash
        for trace, _interfaces in read_stored(traces, rows)
        for each in trace.transactions
        for message in (*each.out_msgs, *filter(None, [each.in_msg]))
        if message.init_state
    }
    assert brought
    assert brought <= set(found["msg_hash"].to_pylist())
