"""The assembly against the reference, batch by batch, and the edges that make or end a tree."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.derive.trace.forest import SOURCES, Forest, digest, forests
from tests.ingest.derive.trace.lakes import expected_rows
from tonlake.ingest.derive.trace import Assembled, UnfinishedTraces, assemble, move_rows
from tonlake.ingest.errors import IngestError
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.schema import TABLES


def assemble_range(forest: Forest, first: int, last: int, before: UnfinishedTraces) -> Assembled:
    tables = forest.tables(first, last)
    return assemble(tables["transactions"], tables["messages"], before)


def assemble_whole(forest: Forest) -> Assembled:
    return assemble_range(forest, 1, forest.last, UnfinishedTraces())


def sorted_rows(name: str, *parts: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = sort_rows(pa.concat_tables(parts), TABLES[name]).to_pylist()
    return rows


@settings(deadline=None, max_examples=20)
@given(forests())
def test_one_batch_equals_the_oracle(forest: Forest) -> None:
    made = assemble_whole(forest)
    expected = expected_rows(forest)
    assert sorted_rows("transaction_traces", made.transactions) == expected["transaction_traces"]
    assert sorted_rows("traces", made.complete, made.open.traces) == expected["traces"]
    assert sorted_rows("open_edges", made.open.edges) == expected["open_edges"]
    assert made.moved.num_rows == 0


@settings(deadline=None, max_examples=20)
@given(forests(), st.data())
def test_batches_in_any_order_equal_the_oracle(forest: Forest, data: st.DataObject) -> None:
    blocks = data.draw(st.permutations(range(1, forest.last + 1)))
    transactions = [TABLES["transaction_traces"].arrow.empty_table()]
    complete = [TABLES["traces"].arrow.empty_table()]
    before = UnfinishedTraces()
    for block in blocks:
        made = assemble_range(forest, block, block, before)
        transactions = [move_rows(rows, made.moved) for rows in transactions]
        transactions.append(made.transactions)
        complete.append(made.complete)
        before = made.open
    expected = expected_rows(forest)
    assert sorted_rows("transaction_traces", *transactions) == expected["transaction_traces"]
    assert sorted_rows("traces", *complete, before.traces) == expected["traces"]
    assert sorted_rows("open_edges", before.edges) == expected["open_edges"]


def test_every_execution_of_one_external_message_is_a_trace() -> None:
    forest = Forest(1)
    arrival = {"kind": "ext_in", "msg_hash": digest("same"), "hash_norm": digest("norm")}
    for _ in range(3):
        forest.add(1, arrival)
    made = assemble_whole(forest).complete
    assert made["external_hash"].to_pylist() == [digest("same")] * 3
    assert made["external_hash_norm"].to_pylist() == [digest("norm")] * 3
    assert made["trace_id"].to_pylist() == [row["hash"] for row in forest.transactions]


def test_a_message_of_the_validators_starts_a_complete_trace() -> None:
    forest = Forest(1)
    forest.add(1, forest.make_arrival("sys"))
    made = assemble_whole(forest)
    assert made.transactions["edge"].to_pylist() == ["sys"]
    assert made.complete.select(["state", "messages"]).to_pylist() == [
        {"state": "complete", "messages": 1}
    ]
    assert made.open.edges.num_rows == 0


def test_an_account_at_the_address_of_the_validators_sends_like_all_others() -> None:
    forest = Forest(2)
    sent = forest.add(1, forest.make_arrival("ext"), ["int"])
    sent[0] |= SOURCES["sys"]
    forest.messages[-1] |= SOURCES["sys"]
    forest.add(2, sent[0])
    assert assemble_whole(forest).complete["transactions"].to_pylist() == [2]
    alone = assemble_range(forest, 2, 2, UnfinishedTraces())
    assert alone.open.traces["state"].to_pylist() == ["broken"]


def test_a_transaction_without_message_is_a_trace_without_edges() -> None:
    forest = Forest(1)
    forest.add(1, forest.make_arrival("tick"))
    made = assemble_whole(forest)
    assert made.transactions.select(["edge", "parent_hash"]).to_pylist() == [
        {"edge": None, "parent_hash": None}
    ]
    assert made.complete.select(["external_hash", "transactions", "messages"]).to_pylist() == [
        {"external_hash": None, "transactions": 1, "messages": 0}
    ]


def test_a_log_message_arrives_at_once() -> None:
    forest = Forest(1)
    forest.add(1, forest.make_arrival("ext"), ["ext_out", "ext_out"])
    made = assemble_whole(forest).complete
    assert made.select(["messages", "pending_messages"]).to_pylist() == [
        {"messages": 3, "pending_messages": 0}
    ]


def test_the_same_hash_with_another_created_lt_is_another_message() -> None:
    forest = Forest(2)
    sent = forest.add(1, forest.make_arrival("ext"), ["int"])
    forest.add(2, sent[0] | {"created_lt": sent[0]["created_lt"] + 1})
    made = assemble_whole(forest)
    assert sorted(made.open.traces["state"].to_pylist()) == ["broken", "pending"]


def test_a_broken_trace_heals_and_keeps_its_own_pending_message() -> None:
    forest = Forest(2)
    sent = forest.add(1, forest.make_arrival("ext"), ["int"])
    forest.add(2, sent[0], ["int"])
    later = assemble_range(forest, 2, 2, UnfinishedTraces())
    assert later.open.traces["state"].to_pylist() == ["broken"]
    healed = assemble_range(forest, 1, 1, later.open)
    root, child = (row["hash"] for row in forest.transactions)
    assert healed.open.traces.select(["trace_id", "state", "transactions"]).to_pylist() == [
        {"trace_id": root, "state": "pending", "transactions": 2}
    ]
    assert healed.open.edges["trace_id"].to_pylist() == [root]
    assert move_rows(later.transactions, healed.moved).select(
        ["hash", "trace_id", "parent_hash"]
    ).to_pylist() == [{"hash": child, "trace_id": root, "parent_hash": root}]


def test_a_long_chain_in_one_batch_has_one_root() -> None:
    forest = Forest(1)
    sent = forest.add(1, forest.make_arrival("ext"), ["int"])
    for _ in range(2000):
        sent = forest.add(1, sent[0], ["int"])
    made = assemble_whole(forest)
    assert made.transactions["trace_id"].unique().to_pylist() == [forest.transactions[0]["hash"]]
    assert made.open.traces["transactions"].to_pylist() == [2001]


def test_open_rows_stay_in_one_chunk() -> None:
    forest = Forest(40)
    sent: list[dict[str, Any]] = []
    for mc_seqno in range(1, 41):
        sent = forest.add(mc_seqno, sent[0] if sent else forest.make_arrival("ext"), ["int", "int"])
        forest.add(mc_seqno, forest.make_arrival("ord"))
    before = UnfinishedTraces()
    for mc_seqno in range(1, 41):
        before = assemble_range(forest, mc_seqno, mc_seqno, before).open
        for column in (*before.traces.columns, *before.edges.columns):
            assert column.num_chunks == 1
    assert before.traces.num_rows == 41


def test_a_cycle_of_messages_is_rejected() -> None:
    forest = Forest(1)
    sent = forest.add(1, {"kind": "int", "msg_hash": digest("ring"), "created_lt": 5}, ["int"])
    forest.add(1, sent[0], ["int"])
    ring = {"msg_hash": digest("ring"), "created_lt": 5}
    forest.messages[-1] |= ring
    with pytest.raises(IngestError, match="cycle"):
        assemble_whole(forest)
