"""Streams over real HTTP: every event once, in order, wherever a client reconnects."""

import asyncio
import itertools
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.testing import TestClient
from uvicorn.protocols.utils import ClientDisconnected
from websockets import ConnectionClosed
from websockets.sync.client import connect

from tests.api.conftest import BLOCKS_PER_COMMIT
from tests.api.growth import WAIT_S, Frame, Frames, Growth, list_events, serve
from tests.api.stream.clients import make_lake, measure
from tests.patience import PATIENT, patient
from tonlake.api.app import create_app
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.stream import hub, routes
from tonlake.api.stream.event import (
    STATES,
    TYPES,
    Client,
    Cursor,
    Event,
    StreamQuery,
    cut,
    make_subscription,
)
from tonlake.api.stream.rendering import EventMaker
from tonlake.ingest.derive.trace import reopen_traces
from tonlake.lake.log.envelope import encode_entry
from tonlake.lake.log.state import (
    FIRST_FILE,
    LOG_FOLDER,
    FirstEntry,
    checkpoint_name,
    entry_name,
    read_state,
)
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.removal import prune_lake, undo_after
from tonlake.lake.settings import LakeSettings

Shown = list[tuple[str, Any]]


@given(st.lists(st.integers(0, 9)), st.integers(1, 9))
def test_parts_are_no_heavier_than_asked(weights: list[int], most: int) -> None:
    parts = cut(weights, int, most)
    assert list(itertools.chain(*parts)) == weights
    assert all(sum(part) <= most or len(part) == 1 for part in parts)
    assert all(sum(part) + after[0] > most for part, after in itertools.pairwise(parts))


def show_events(events: Iterable[Event]) -> Shown:
    return [(str(event.cursor), msgspec.json.decode(event.body)) for event in events]


def show_frames(frames: Iterable[Frame]) -> Shown:
    return [(frame.id, frame.data) for frame in frames]


@pytest.fixture(scope="module")
def expected(many_commits: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """All events of all commits that an unfiltered client receives."""
    growth = Growth(many_commits, tmp_path_factory.mktemp("expected") / "lake")
    growth.show(growth.commits)
    wanted = make_subscription(StreamQuery())
    events = list_events(growth.lake_dir, range(1, growth.commits + 1))
    return show_events(event for event in events if wanted.accepts(event))


def test_a_stream_says_what_lists_say(many_commits: Path, expected: Shown) -> None:
    """Every transaction, complete trace and action of the lake is one event, with its words."""
    sent: dict[str, list[Any]] = {kind: [] for kind in TYPES}
    for _id, data in expected:
        assert data["finality"] == "finalized"
        sent[data["type"]].append(data)
    limit = 1000
    with TestClient(create_app(many_commits, PATIENT)) as client:

        def list_all(path: str, key: str) -> list[Any]:
            pages = (
                client.get(f"/api/v3/{path}", params={"limit": limit, "offset": at, "sort": "asc"})
                for at in itertools.count(0, limit)
            )
            rows = (page.json()[key] for page in pages)
            return list(itertools.chain.from_iterable(itertools.takewhile(bool, rows)))

        transactions = {one["hash"]: one for one in list_all("transactions", "transactions")}
        actions = {one["action_id"] for one in list_all("actions", "actions")}
        traces = {one["trace_id"]: one for one in list_all("events", "events")}
    assert len(sent["transactions"]) == len(transactions) > 500
    for data in sent["transactions"]:
        (one,) = data["transactions"]
        check_transaction(one, transactions[one["hash"]])
    assert sorted(data["actions"][0]["action_id"] for data in sent["actions"]) == sorted(actions)
    complete = [one for one in traces.values() if not one["is_incomplete"]]
    assert len(sent["trace"]) == len(complete)
    for data in sent["trace"]:
        known = traces[data["trace_id"]]
        assert data["trace"] == known["trace"]
        assert data["transactions"].keys() == known["transactions"].keys()
        for name, one in data["transactions"].items():
            check_transaction(one, known["transactions"][name])
        assert data["actions"] == known["actions"]
    assert sent["account_state_change"]
    assert sent["jettons_change"]
    ids = [Cursor(*map(int, name.split(":"))) for name, _ in expected]
    assert ids == sorted(set(ids))


def check_transaction(one: dict[str, Any], known: dict[str, Any]) -> None:
    """Compare a transaction of an event with that of a list, which knows more of the states."""
    sides = {"account_state_before", "account_state_after"}
    assert all(one[side]["hash"] == known[side]["hash"] for side in sides)
    assert {name: one[name] for name in one.keys() - sides} == {
        name: known[name] for name in known.keys() - sides
    }


def test_merged_files_give_the_same_rows(growth: Growth, expected: Shown) -> None:
    growth.show(growth.commits)
    names = {path.name for path in growth.lake_dir.rglob("*.parquet")}
    compact_lake(growth.lake_dir, LakeSettings(orphan_grace_s=0))
    sweep_orphans(growth.lake_dir, LakeSettings(orphan_grace_s=0))
    assert not names & {path.name for path in growth.lake_dir.rglob("transactions/**/*.parquet")}
    commits = range(1, len(list((growth.lake_dir / "_log").glob("*[0-9].json"))) + 1)
    assert len(commits) > growth.commits
    wanted = make_subscription(StreamQuery())
    events = list_events(growth.lake_dir, commits)
    assert show_events(event for event in events if wanted.accepts(event)) == expected


def test_many_clients_while_the_lake_grows(growth: Growth, expected: Shown) -> None:
    """All clients receive the same; one that reconnects resumes, even on another server."""
    growth.show(2)
    new = [one for one in expected if Cursor(*map(int, one[0].split(":"))) >= (3, 0, 0)]
    half = len(new) // 2
    with (
        serve(growth.lake_dir) as server,
        server.stream() as first,
        server.stream() as second,
        server.stream(types="transactions") as third,
    ):
        growth.show(growth.commits - 2)
        assert show_frames(first.take(len(new))) == new
        part = second.take(half)
        assert show_frames(part) == new[:half]
        wanted = [one for one in new if one[1]["type"] == "transactions"]
        assert show_frames(third.take(len(wanted))) == wanted
    with serve(growth.lake_dir) as server:
        with server.stream(last=part[-1].id) as again:
            assert show_frames(again.take(len(new) - half)) == new[half:]
        for place in (0, 1, len(new) // 3, len(new) - 2):
            with server.stream(last=new[place][0], types=["transactions", "actions"]) as again:
                rest = [
                    one for one in new[place + 1 :] if one[1]["type"] in ("transactions", "actions")
                ]
                assert show_frames(again.take(len(rest))) == rest


def test_a_client_cut_off_before_its_first_event_misses_nothing(
    growth: Growth, expected: Shown
) -> None:
    """The first frame has an id: events missed while the client is away come on reconnect."""
    growth.show(3)
    with (
        serve(growth.lake_dir) as server,
        httpx.stream("GET", f"{server.url}/api/streaming/v2/sse", timeout=WAIT_S) as answer,
    ):
        start = Frames(answer).next()
    growth.show(2)
    with serve(growth.lake_dir) as server, server.stream(last=start.id) as again:
        growth.show()
        wanted = [one for one in expected if "4:" <= one[0][:2] <= "6:"]
        assert show_frames(again.take(len(wanted))) == wanted


def test_a_commit_is_open_before_its_events(
    growth: Growth, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, pushed = mock.Mock(), threading.Event()
    steps.push.side_effect = lambda _event: pushed.set()
    for owner, name in ((SnapshotHolder, "open_ahead"), (Client, "push")):
        monkeypatch.setattr(owner, name, getattr(steps, name))
    growth.show()
    with serve(growth.lake_dir) as server, server.stream():
        growth.show()
        assert pushed.wait(WAIT_S)
    assert [name for name, *_ in steps.mock_calls][:2] == ["open_ahead", "push"]


def test_accounts_and_types_of_actions(growth: Growth, expected: Shown) -> None:
    growth.show()
    account = next(
        one["actions"][0]["details"]["destination"]
        for _id, one in expected
        if one["type"] == "actions" and one["actions"][0]["type"] == "ton_transfer"
    )
    transfers = [
        one
        for one in expected
        if one[1]["type"] == "actions"
        and one[1]["actions"][0]["type"] == "ton_transfer"
        and account in str(one[1]["actions"][0]["details"])
    ]
    states = [
        one
        for one in expected
        if one[1]["type"] == "account_state_change" and one[1]["account"] == account
    ]
    with serve(growth.lake_dir) as server:
        wanted = {"addresses": account.lower(), "last_event_id": "1:0:0"}
        with (
            server.stream(types="actions", action_types="ton_transfer", **wanted) as sent,
            server.stream(types="account_state_change", **wanted) as changed,
        ):
            growth.show(growth.commits - 1)
            assert show_frames(sent.take(len(transfers))) == transfers
            assert show_frames(changed.take(len(states))) == states


def test_messages_that_began_traces(growth: Growth, expected: Shown) -> None:
    named = [one for one in expected if one[1]["type"] in {"transactions", "trace", "actions"}]
    norms = [one[1]["trace_external_hash_norm"] for one in named]  # of ticks and tocks, too
    norm = next(name for name in norms if norms.count(name) > 3)
    wanted = [one for one in named if one[1]["trace_external_hash_norm"] == norm]
    assert {one[1]["type"] for one in wanted} == {"transactions", "trace", "actions"}
    growth.show(growth.commits)
    with serve(growth.lake_dir) as server:
        asked = {"trace_external_hash_norms": [norm], "last_event_id": "1:0:0"}
        url = f"{server.url}/api/streaming/v2/sse"
        with httpx.stream("POST", url, json=asked, timeout=WAIT_S) as answer:
            frames = Frames(answer)
            assert frames.next().name == "subscribed"
            assert show_frames(frames.take(len(wanted))) == wanted


@mock.patch.object(hub, "CLIENT_EVENTS", 3)
def test_a_client_that_cannot_follow_is_closed(growth: Growth, expected: Shown) -> None:
    """A block has more events than the backlog: the client gets its position, and resumes there."""
    growth.show()
    with serve(growth.lake_dir) as server:
        with server.stream() as frames:
            growth.show()
            got = []
            while (frame := frames.next()).name == "message":
                got.append(frame)
            assert frame.name == "error"
            assert "more than 3 events were waiting" in frame.data["error"]
            last = got[-1].id if got else "2:0:0"
            assert frame.data["last_event_id"] == last
            with pytest.raises(StopIteration):
                frames.next()
        with server.stream(last=last) as frames:
            wanted = [one for one in expected if one[0].startswith("2:")]
            rest = wanted[len(got) :]
            assert show_frames(got) == wanted[: len(got)]
            assert show_frames(frames.take(len(rest))) == rest


def test_an_error_ends_streams_and_not_the_hub(growth: Growth) -> None:
    """Clients, live ones and those that read the past, are closed; later ones get later commits."""
    growth.show()
    with serve(growth.lake_dir) as server:

        def fail(last: str | None) -> Any:
            with server.stream(last=last, types="transactions") as frames:
                growth.show()
                names = iter(frames.next, None)  # of the commit before, if the hub is still at it
                return next(frame for frame in names if frame.name == "error").data["error"]

        for last in (None, "1:0:0"):
            with mock.patch.object(EventMaker, "make", side_effect=TypeError("odd")):
                assert "an error of the server" in fail(last)
        with server.stream() as frames:
            growth.show()
            assert frames.next().name == "message"
        shutil.rmtree(growth.lake_dir / "transactions")
        assert "the lake cannot be read" in fail(None)
        assert "the lake cannot be read" in fail("1:0:0")


def test_blocks_that_are_undone(growth: Growth, expected: Shown) -> None:
    """All clients receive the event, whatever they asked for, and so do clients that reconnect."""
    growth.show(growth.commits)
    last_kept = (growth.commits - 1) * BLOCKS_PER_COMMIT
    with serve(growth.lake_dir) as server:
        with server.stream(types="actions", addresses="0:" + "00" * 32) as frames:
            commit = undo_after(
                growth.lake_dir,
                last_kept,
                LakeSettings(),
                max_mc_blocks=1000,
                source={},
                reopen=lambda state, first: reopen_traces(growth.lake_dir, state, first),
            )
            assert commit is not None
            sent = frames.next()
        assert sent.id == f"{commit.number}:{last_kept + 1}:1"
        assert sent.data == {
            "type": "blocks_undone",
            "first_mc_seqno": last_kept + 1,
            "last_mc_seqno": commit.last_mc_seqno,
        }
        before = [one for one in expected if one[0].startswith(f"{growth.commits}:")]
        with server.stream(last=f"{growth.commits}:0:0") as frames:
            assert show_frames(frames.take(len(before))) == before
            assert frames.next() == sent
    sweep_orphans(growth.lake_dir, LakeSettings(orphan_grace_s=0))
    with (
        serve(growth.lake_dir) as server,
        server.stream(last=f"{growth.commits}:0:0") as frames,
    ):
        assert frames.next() == sent, "what is gone from the lake is not made up"


@pytest.mark.parametrize("is_swept", [False, True])
def test_pruned_blocks_are_not_replayed_in_part(
    growth: Growth, expected: Shown, *, is_swept: bool
) -> None:
    """All their events come as long as the files are there; then none, with the reason."""
    growth.show(growth.commits)
    last = read_state(growth.lake_dir).ranges[-1][1]
    prune_lake(growth.lake_dir, last - 3, LakeSettings())
    if is_swept:
        sweep_orphans(growth.lake_dir, LakeSettings(orphan_grace_s=0))
    with serve(growth.lake_dir) as server, server.stream(last="1:0:0") as frames:
        if not is_swept:
            assert show_frames(frames.take(len(expected))) == expected
            return
        refused = frames.next()
        assert f"pruned up to masterchain block {last - 4}" in refused.data["error"]
        with pytest.raises(StopIteration):
            frames.next()


def test_a_cursor_from_before_the_log_is_refused(growth: Growth, expected: Shown) -> None:
    """A service that commits each block keeps the entries of some minutes only."""
    growth.show(growth.commits)
    first, log = growth.commits - 1, growth.lake_dir / LOG_FOLDER
    state = read_state(growth.lake_dir, first)
    (log / checkpoint_name(first)).write_bytes(encode_entry(state)[0])
    (growth.lake_dir / FIRST_FILE).write_bytes(encode_entry(FirstEntry(first))[0])
    for number in range(1, first):
        (log / entry_name(number)).unlink()
    rest = [one for one in expected if int(one[0].split(":")[0]) >= first]
    with serve(growth.lake_dir) as server:
        with server.stream(last=f"{first}:0:0") as frames:
            assert show_frames(frames.take(len(rest))) == rest
        url, headers = f"{server.url}/api/streaming/v2/sse", {"Last-Event-ID": f"{first - 1}:90:9"}
        answer = httpx.get(url, headers=headers)
    assert answer.status_code == 422
    assert f"of commit {first - 1}, and the log begins with {first}" in answer.json()["error"]


def test_what_is_refused(growth: Growth) -> None:
    growth.show()
    url = "/api/streaming/v2/sse"
    with TestClient(create_app(growth.lake_dir, PATIENT)) as client:
        for name, value, text in (
            ("types", "blocks", "unknown event type 'blocks': transactions, account_state"),
            ("addresses", "x", 'error converting value for index 0 of "addresses"'),
            ("min_finality", "x", "min_finality should be one of: pending, confirmed"),
            ("last_event_id", "x", 'error converting value for "last_event_id"'),
            ("last_event_id", "9:0:0", "last_event_id is of commit 9, but the newest"),
        ):
            params = {name: value}
            for answer in (client.get(url, params=params), client.post(url, json=params)):
                assert (answer.status_code, text in answer.json()["error"]) == (422, True), params
        answer = client.get(url, headers={"Last-Event-ID": "x"})
        assert (answer.status_code, "Last-Event-ID" in answer.text) == (422, True)
        odd: list[Any] = [7, [7], "", {}]
        filters = [("types", one) for one in odd] + [("min_finality", [])]
        bodies = [msgspec.json.encode({name: value}) for name, value in filters]
        for body in (b"[]", b"{", b"\xff", *bodies):
            assert client.post(url, content=body).status_code == 422
    with TestClient(create_app(growth.lake_dir, patient(stream={"clients": 0}))) as client:
        assert client.get(url).status_code == 503


def test_a_socket(growth: Growth, expected: Shown, caplog: pytest.LogCaptureFixture) -> None:
    """The same events as messages; their ids stand in them."""
    wanted = [one for one in expected if one[1]["type"] == "transactions"]
    growth.show()
    with serve(growth.lake_dir) as server, connect(server.socket_url, max_size=None) as socket:

        def receive() -> Any:
            return msgspec.json.decode(socket.recv(timeout=WAIT_S))

        def ask(**asked: Any) -> Any:
            socket.send(msgspec.json.encode(asked).decode())
            return receive()

        assert ask(operation="ping", id="a") == {"id": "a", "status": "pong"}
        assert all("should be one of" in ask(operation=odd)["error"] for odd in ("x", 1, ["x"]))
        assert "unknown event type" in ask(operation="subscribe", types=["x"], id=7)["error"]
        socket.send("{")
        assert "failed to parse" in receive()["error"]
        socket.send(b'{"operation": "ping"}')
        assert "not bytes" in receive()["error"]
        answer = ask(operation="subscribe", types=["transactions"], last_event_id="1:0:0", id="b")
        assert answer == {"id": "b", "status": "subscribed", "last_event_id": "1:0:0"}
        growth.show(growth.commits - 1)
        for name, data in wanted:
            assert receive() == {"event_id": name} | data
        accounts = [one[1]["account"] for one in expected if one[1]["type"] == STATES]
        (gone, _count), (kept, count) = Counter(accounts).most_common(2)
        ask(operation="subscribe", types=[STATES], addresses=[gone, kept], last_event_id="1:0:0")
        left = {"status": "unsubscribed"}
        got = [ask(operation="unsubscribe", addresses=[gone])]
        while sum(one.get("account") == kept for one in got) < count or left not in got:
            got.append(receive())
        assert {one["account"] for one in got[got.index(left) + 1 :]} <= {kept}
        assert len({one["event_id"] for one in got if one.get("account") == kept}) == count
        assert ask(operation="unsubscribe") == left
        failing = mock.patch.object(routes, "make_subscription", side_effect=TypeError("odd"))
        with failing, pytest.raises(ConnectionClosed):
            ask(operation="subscribe")
    assert "TypeError: odd" in caplog.text


@pytest.mark.parametrize(("kind", "sends"), [("http", 2), ("websocket", 4), ("websocket", 1)])
def test_a_client_that_hangs_up_at_once_leaves(
    kind: str, sends: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(tmp_path, PATIENT)
    subscribe = {"type": "websocket.receive", "text": '{"operation": "subscribe"}'}
    messages = iter([{"type": "websocket.connect"}, *[subscribe] * 3] * (kind == "websocket"))
    steps = iter(range(sends))

    async def receive() -> Any:
        return next(messages, {"type": f"{kind}.disconnect", "code": 1000})

    async def send(_message: Any) -> None:
        if next(steps, None) is None:
            raise ClientDisconnected
        if kind == "http":
            await asyncio.sleep(0)

    path = "/api/streaming/v2/" + ("sse" if kind == "http" else "ws")
    scope: Any = {"type": kind, "path": path, "query_string": b"", "headers": [], "state": {}}
    asyncio.run(app(scope | {"method": "GET"} if kind == "http" else scope, receive, send))
    assert next(steps, None) is None
    assert app.state.hub.count_clients() == 0
    assert not caplog.records


@mock.patch.object(hub, "KEPT_EVENTS", 8)
async def test_chunks_without_events_are_forgotten_too(tmp_path: Path) -> None:
    found = create_app(tmp_path, PATIENT).state.hub

    with mock.patch.object(EventMaker, "make", return_value=[]):
        for chunk in range(20):
            await found._make(chunk, "actions")
        await found.close()
    assert found._kept.weight == 8


CLIENTS, LAST_BLOCK = 500, 60


@pytest.mark.long
def test_every_event_once_and_in_order(demo_node: Path, tmp_path: Path) -> None:
    blocks = make_lake(demo_node, tmp_path / "blocks", LAST_BLOCK)
    figures = measure(blocks, tmp_path / "lake", CLIENTS)
    sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
    assert figures["wrong"] == []
    assert figures["events sent"] > CLIENTS * LAST_BLOCK
    assert figures["connections"] >= 2 * CLIENTS, "the server was not missed"
