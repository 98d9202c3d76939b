"""Gathered rows of traces: all of theirs, and no others."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tonlake.ingest.derive.action import stored
from tonlake.ingest.derive.action.stored import INIT_STATES, read_stored
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Place
from tonlake.lake.log.state import LogState, read_state
from tonlake.lake.schema import MESSAGES, NFT_SALES, TRACES, TRANSACTION_TRACES, TRANSACTIONS


def _read(lake: Path, state: LogState, table: str) -> pa.Table:
    return pa.concat_tables(read_rows(lake, file) for file in state.files if file.table == table)


def _complete(traces: pa.Table) -> pa.Table:
    return traces.filter(pc.equal(traces["state"], "complete"))


@pytest.mark.parametrize("filtered_rows", [0, 1 << 40])
def test_rows_of_other_traces_are_left_out(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch, filtered_rows: int
) -> None:
    """A trace may span a day of blocks, of which only its own rows fit into memory."""
    monkeypatch.setattr(stored, "_FILTERED_ROWS", filtered_rows)
    state = read_state(demo_lake)
    traces = _complete(_read(demo_lake, state, TRACES.name)).sort_by("transactions")
    last = traces.slice(traces.num_rows - 1)
    rows = stored.gather_sources(demo_lake, state, last, {}, Place(0, 0, ""))
    (count,) = last["transactions"].to_pylist()
    assert rows.take(TRANSACTIONS.name).num_rows == count > 1
    assert len(rows.take(MESSAGES.name)["tx_hash"].unique()) == count


@pytest.mark.parametrize("is_at_hand", [False, True])
def test_init_states_of_sales_alone(demo_lake: Path, *, is_at_hand: bool) -> None:
    """A contract deployed by a message is declared a sale."""
    state = read_state(demo_lake)
    names = (MESSAGES.name, TRACES.name, TRANSACTION_TRACES.name, TRANSACTIONS.name)
    tables = {name: _read(demo_lake, state, name) for name in names}
    traces = _complete(tables[TRACES.name])
    messages = tables[MESSAGES.name]
    deploying = messages.filter(pc.is_valid(messages["init_state"]))
    sale = deploying["destination"][0]
    row = {"workchain": 0, "account": sale.as_py(), "mc_seqno": 1, "kind": "getgems_sale"}
    row |= {"details": "{}"}
    made = pa.Table.from_pylist([row], NFT_SALES.arrow)
    seqnos = pc.min_max(tables[TRANSACTIONS.name]["mc_seqno"]).as_py()
    place = Place(seqnos["min"] + (not is_at_hand), seqnos["max"], "2026-01-01")
    at_hand = {**(tables if is_at_hand else {}), NFT_SALES.name: made}
    rows = stored.gather_sources(demo_lake, state, traces, at_hand, place)
    found = rows.tables[INIT_STATES]
    expected = deploying.filter(pc.equal(deploying["destination"], sale))
    for name in ("msg_hash", "init_state"):
        assert set(found[name].to_pylist()) == set(expected[name].to_pylist())
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
