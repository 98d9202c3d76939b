"""Pending messages: their emulated effects are shown until the chain has the real ones."""

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.api.growth import WAIT_S, Growth, serve
from tests.api.v2.test_send import Upstream, running_upstream
from tests.ingest.bags import read_bags
from tests.patience import patient, vary
from tonlake.api.chain.run import emulate_message
from tonlake.api.pending import EXPIRY_S, PendingPool, PendingTrace
from tonlake.api.request.call import Call
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.stream.event import Event
from tonlake.ingest.decode.cell.writer import serialize_single
from tonlake.ingest.derive.action.stored import SOURCES
from tonlake.ingest.derive.tvm.call import NotAccepted
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.derive.tvm.trace import list_messages, read_message
from tonlake.lake.duck.connection import connect
from tonlake.queries.loader import load_queries

SETTINGS = patient(pending={"messages": 2})

pytestmark = pytest.mark.usefixtures("tvm")


@pytest.fixture(scope="module")
def machine() -> Iterator[TvmPool]:
    pool = TvmPool(SETTINGS.tvm)
    yield pool
    pool.close()


class Scene:
    """A pool over a lake that grows, with a clock that is set by hand."""

    def __init__(self, lake_dir: Path, machine: TvmPool) -> None:
        self.now_s = 0.0
        self.events: list[Event] = []
        self.machine = machine
        self.holder = SnapshotHolder(lake_dir, SETTINGS)
        self.pool = PendingPool(
            self.holder, SETTINGS, machine, self.events.extend, lambda: self.now_s
        )

    def call(self) -> Call:
        return Call(SETTINGS, self.holder.reader(), tvm=self.machine)

    def norms(self) -> list[bytes]:
        """Return which messages are pending."""
        return [message.norm for message in self.pool.list_messages()]

    def kinds(self) -> Counter[str]:
        """Return how many events of each type came since this was last asked."""
        found = Counter(event.kind for event in self.events)
        self.events.clear()
        return found


@pytest.fixture
def scene(growth: Growth, machine: TvmPool) -> Iterator[Scene]:
    growth.show()
    made = Scene(growth.lake_dir, machine)
    yield made
    made.holder.close()


Message = dict[str, Any]


@pytest.fixture(scope="module")
def messages(many_commits: Path) -> list[Message]:
    """Messages from outside that were the first that their accounts got in a commit."""
    holder = SnapshotHolder(many_commits, SETTINGS)
    connection = connect(holder.reader().snapshot, SETTINGS.lake)
    rows = connection.execute(
        "select mc_seqno, hash, account from transactions where workchain = 0 order by lt"
    ).fetchall()
    bags = read_bags(connection)
    holder.close()
    seen: set[tuple[int, bytes]] = set()
    found = []
    for mc_seqno, tx_hash, account in rows:
        commit = (mc_seqno - 1) // 15 + 1
        received, _sent = list_messages(bags[tx_hash])
        if received is not None and (commit, account) not in seen:
            read = read_message(received)
            if read["kind"] == "ext_in":
                found.append(read | {"commit": commit, "boc": received, "tx_hash": tx_hash})
        seen.add((commit, account))
    return found


def keep_one(scene: Scene, growth: Growth, messages: list[Message]) -> Message:
    """Send a message when the lake ends just before the commit that has it."""
    message = next(one for one in messages if one["commit"] > 1)
    growth.show(message["commit"] - 2)
    scene.pool.add(scene.call(), message["boc"])
    return message


def test_a_message_lands(scene: Scene, growth: Growth, messages: list[Message]) -> None:
    """It is pending with its trace until the commit that has it, and no longer."""
    message = keep_one(scene, growth, messages)
    scene.pool.add(scene.call(), message["boc"])
    assert scene.norms() == [message["hash_norm"]]
    events = scene.kinds()
    assert (events["trace"], events["trace_invalidated"]) == (1, 0)
    assert events["transactions"] >= 1
    assert events["actions"] >= 1
    (kept,) = scene.pool.list_messages()
    assert kept.trace is not None
    assert kept.trace.row["external_hash"] == message["msg_hash"]
    kinds = {
        (one.description.is_tock, one.description.installed)
        for one in kept.trace.transactions.values()
    }
    assert kinds == {(False, False)}
    growth.show()
    scene.holder.reader(message["commit"])
    scene.pool.settle()
    while scene.holder.newest_number() < message["commit"]:
        continue
    assert scene.norms() == []
    assert scene.kinds()["trace_invalidated"] == 0


def test_a_message_lands_while_its_snapshot_is_opened(
    scene: Scene, growth: Growth, messages: list[Message]
) -> None:
    """Who looks meanwhile sees the snapshot before; the message goes when the new one is there."""
    message = keep_one(scene, growth, messages)
    growth.show()
    while scene.holder.newest_number() < message["commit"]:
        continue
    with scene.holder._opening:
        assert scene.norms() == [message["hash_norm"]]
    assert scene.norms() == []


def test_a_message_expires(scene: Scene, growth: Growth, messages: list[Message]) -> None:
    message = messages[0]
    growth.show(max(0, message["commit"] - 2))
    scene.pool.add(scene.call(), message["boc"])
    scene.kinds()
    scene.now_s = EXPIRY_S - 1
    assert len(scene.norms()) == 1
    scene.now_s += 1
    assert scene.norms() == []
    assert scene.kinds() == {"trace_invalidated": 1}


def test_the_oldest_goes_where_there_are_too_many(
    scene: Scene, growth: Growth, messages: list[Message]
) -> None:
    three = [one for one in messages if one["commit"] == messages[-1]["commit"]][:3]
    assert len(three) == 3
    growth.show(three[0]["commit"] - 2)
    for one in three:
        scene.pool.add(scene.call(), one["boc"])
    assert scene.norms() == [one["hash_norm"] for one in three[1:]]
    assert scene.kinds()["trace_invalidated"] == 1


def test_what_cannot_be_accepted_any_more(
    scene: Scene, growth: Growth, messages: list[Message]
) -> None:
    """The same order signed twice: once one is in a block, the wallet refuses the other."""
    message = keep_one(scene, growth, messages)
    (kept,) = scene.pool.list_messages()
    kept.first_mc_seqno = 1 << 40  # it is another message than that which lands
    scene.kinds()
    growth.show()
    while scene.holder.newest_number() < message["commit"]:
        continue
    assert scene.norms() == []
    assert scene.kinds() == {"trace_invalidated": 1}


def test_what_is_no_message_is_not_kept(scene: Scene) -> None:
    scene.pool.add(scene.call(), serialize_single(b"\0\0"))
    assert scene.norms() == []


def test_every_source_of_classification_can_be_asked() -> None:
    known = set(SOURCES) - {"transactions", "messages", "transaction_traces"}
    assert known <= {name.removeprefix("pending/") for name in load_queries()}


SHAPE = ("type", "success", "source", "destination", "asset", "amount", "value", "opcode")


def compare(call: Call, message: Message, real: Callable[[str, bytes], Any]) -> str:
    """Say how far what was foreseen is what the chain did."""
    made = emulate_message(call, message["boc"], seqno=message["mc_seqno"] - 1)
    if isinstance(made, NotAccepted):
        return "not accepted"
    trace = PendingTrace(call, made)
    steps = sorted(
        (one.row["workchain"], one.row["account"], one.row["compute_exit_code"] or 0)
        for one in made.steps
    )
    if steps != sorted(tuple(row) for row in real("steps", message["tx_hash"])):
        return "other transactions"
    foreseen = sorted(str([row[name] for name in SHAPE]) for row in trace.action_rows)
    done = sorted(str(list(row)) for row in real("actions", message["tx_hash"]))
    return "equal" if foreseen == done else "other actions"


def replay(lake_dir: Path, machine: TvmPool, step: int) -> Counter[str]:
    """Emulate messages of a lake on the states before, and compare with their traces."""
    holder = SnapshotHolder(lake_dir, SETTINGS)
    call = Call(SETTINGS, holder.reader(), tvm=machine)
    connection = connect(call.reader.snapshot, SETTINGS.lake)
    texts = {
        "steps": "select workchain, account, coalesce(compute_exit_code, 0) from transactions"
        " where hash in (select hash from transaction_traces where trace_id = $id)",
        "actions": f"select {', '.join(SHAPE)} from actions where trace_id = $id",  # noqa: S608
    }

    def real(name: str, trace_id: bytes) -> Any:
        return connection.execute(texts[name], {"id": trace_id}).fetchall()

    found: Counter[str] = Counter()
    rows = connection.execute(
        "select t.mc_seqno, t.hash from transactions t join traces r on r.trace_id = t.hash"
        " where t.workchain = 0 and r.external_hash_norm is not null and r.state = 'complete'"
        " order by t.lt"
    ).fetchall()
    bags = read_bags(connection)
    for mc_seqno, tx_hash in rows[::step]:
        received, _sent = list_messages(bags[tx_hash])
        message = {"boc": received, "mc_seqno": mc_seqno, "tx_hash": tx_hash}
        found[compare(call, message, real)] += 1
    holder.close()
    return found


def test_what_is_foreseen_is_what_the_chain_does(many_commits: Path, machine: TvmPool) -> None:
    found = replay(many_commits, machine, 6)
    assert found.total() > 10
    assert found.keys() == {"equal"}, found


def test_over_http(growth: Growth, messages: list[Message]) -> None:
    """From the client to the upstream, into the lists and the stream, and out of them again."""
    message = next(one for one in messages if one["commit"] > 1)
    growth.show(message["commit"] - 1)
    answer = {"ok": True, "result": {"@type": "ok", "hash": "A=", "hash_norm": "B="}}
    Upstream.answer = (200, json.dumps(answer).encode())
    norm = base64.b64encode(message["hash_norm"]).decode()
    account = f"0:{message['destination'].hex().upper()}"
    with (
        running_upstream() as url,
        serve(
            growth.lake_dir, **msgspec.to_builtins(vary(SETTINGS, upstream={"url": url}))
        ) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
        server.stream(min_finality="pending", trace_external_hash_norms=norm) as frames,
    ):

        def ask(name: str, **params: Any) -> Any:
            found = client.get(f"/api/v3/{name}", params=params)
            assert found.status_code == 200, found.text
            return found.json()

        sent = client.post(
            "/api/v3/message", json={"boc": base64.b64encode(message["boc"]).decode()}
        )
        assert sent.json() == {"message_hash": "A=", "message_hash_norm": "B="}
        (trace,) = ask("pendingTraces", ext_msg_hash=norm)["traces"]
        assert trace["trace_info"]["trace_state"] == "pending"
        assert trace["actions"]
        shown = ask("pendingTransactions", account=account)["transactions"]
        assert {one["hash"] for one in shown} <= set(trace["transactions"])
        assert {(one["emulated"], one["finality"]) for one in shown} == {(True, "pending")}
        listed = ask("pendingActions", account=account, include_transactions=True)["actions"]
        assert [one["finality"] for one in listed] == ["pending"] * len(listed)
        assert listed[0]["transactions_full"]
        count = len(trace["transactions"])
        events = frames.take(count + 1)
        assert [one.data["finality"] for one in events] == ["pending"] * (count + 1)
        assert {one.id for one in events} == {f"{message['commit']}:0:0"}, (
            "they cannot be asked for"
        )
        growth.show()
        while (frame := frames.next()).data["finality"] != "finalized":
            continue
        assert frame.data["trace_external_hash_norm"] == norm
        # Another thread may be opening the snapshot: until then the one before answers.
        until_s = time.monotonic() + WAIT_S
        while ask("pendingTraces", ext_msg_hash=norm)["traces"]:
            assert time.monotonic() < until_s, "what is in a block is pending still"
        assert ask("traces", msg_hash=norm)["traces"]
