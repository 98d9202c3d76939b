"""Traces emulated on the lake, compared with the chain's."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.ingest.bags import read_bags
from tests.lake.opened import open_views
from tests.patience import PATIENT
from tonlake.api.chain import run
from tonlake.api.chain.run import emulate_message
from tonlake.api.request.call import Call
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.ingest.decode.cell.writer import serialize_single
from tonlake.ingest.derive.tvm.call import NotAccepted
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.derive.tvm.trace import EmulatedTrace, list_messages, read_message
from tonlake.ingest.errors import DecodeError
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.reader import Reader

pytestmark = pytest.mark.usefixtures("tvm")


@pytest.fixture(scope="module")
def call(demo_lake: Path) -> Iterator[Call]:
    snapshot = open_snapshot(demo_lake, check_digests=False)
    pool = TvmPool(PATIENT.tvm)
    yield Call(PATIENT, Reader(snapshot, open_views(snapshot)), tvm=pool)
    pool.close()


def read_traces(call: Call) -> list[dict[str, Any]]:
    """Return the first transaction of whole traces that came from outside, with all others."""
    connection = connect(call.reader.snapshot, PATIENT.lake)
    found = connection.execute(
        "select t.mc_seqno, t.hash, list(struct_pack(workchain := u.workchain,"
        " account := u.account,"
        " exit := u.compute_exit_code, sent := u.outmsg_cnt, aborted := u.aborted)) as steps"
        " from transactions t join transaction_traces r on r.hash = t.hash"
        " join transaction_traces o on o.trace_id = r.trace_id"
        " join transactions u on u.hash = o.hash"
        " where r.trace_id = t.hash and t.in_msg_hash is not null and t.descr = 'ord'"
        " group by t.mc_seqno, t.hash, t.lt order by t.lt"
    )
    names = [column[0] for column in found.description]
    traces = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    bags = read_bags(connection)
    return [{"boc": bags[trace["hash"]], **trace} for trace in traces]


def test_emulated_traces_are_those_of_the_chain(call: Call) -> None:
    """The same accounts do the same; only moments, and with them storage fees, differ."""
    verdicts: Counter[str] = Counter()
    for trace in read_traces(call)[::12]:
        received, _sent = list_messages(trace["boc"])
        assert received is not None
        if read_message(received)["kind"] != "ext_in":
            continue
        made = emulate_message(call, received, seqno=trace["mc_seqno"] - 1)
        if isinstance(made, NotAccepted):
            verdicts["not accepted"] += 1
            continue
        expected = sorted(tuple(step.values()) for step in trace["steps"])
        names = ("workchain", "account", "compute_exit_code", "outmsg_cnt", "aborted")
        found = sorted(tuple(step.row[name] for name in names) for step in made.steps)
        verdicts["equal" if found == expected and not made.cut else "other"] += 1
        check_links(made)
    assert verdicts["equal"] > 20
    assert verdicts["equal"] / verdicts.total() > 0.9


def check_links(trace: EmulatedTrace) -> None:
    """Every transaction but the first was sent by an earlier one, and has the shape of a row."""
    first = trace.steps[0]
    model, messages = decode_transaction(first.row["boc"])
    for place, step in enumerate(trace.steps):
        assert step.row.keys() == model.keys()
        assert all(message.keys() == messages[0].keys() for message in step.messages)
        if place == 0:
            assert step.parent is None
            continue
        assert step.parent is not None
        assert step.parent < place
        parent = trace.steps[step.parent]
        sent = {one["msg_hash"] for one in parent.messages if one["direction"] == "out"}
        assert step.row["in_msg_hash"] in sent
        assert step.row["lt"] > parent.row["lt"]


@mock.patch.object(run, "EMULATED_TRANSACTIONS", 2)
def test_a_trace_is_cut(call: Call) -> None:
    longest = max(read_traces(call), key=lambda trace: len(trace["steps"]))
    received, _sent = list_messages(longest["boc"])
    assert received is not None
    made = emulate_message(call, received, seqno=longest["mc_seqno"] - 1)
    assert isinstance(made, EmulatedTrace)
    assert (len(made.steps), made.cut) == (2, True)


def test_what_is_no_message(call: Call) -> None:
    with pytest.raises(DecodeError, match="not a message"):
        emulate_message(call, serialize_single(b"\0\0"))
