"""Clients hear of signed blocks before the masterchain block that commits them, or does not."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.sync.client import connect

from tests.api.growth import WAIT_S, list_events, serve
from tests.ingest.run.test_signed import LAST, Piped
from tests.ingest.simulator.chain import displace
from tests.ingest.simulator.node import SimulatedNode
from tonlake.api.stream.event import TYPES
from tonlake.api.text.encoding import encode_bytes
from tonlake.ingest.blocks import McBundle
from tonlake.lake.log.following import CONFIRMED_FILE, read_confirmed
from tonlake.lake.log.state import read_state

Name = tuple[str, ...]
SUBJECTS: dict[str, Callable[[Any], Name]] = {
    "transactions": lambda event: (event["transactions"][0]["hash"],),
    "actions": lambda event: (event["actions"][0]["action_id"],),
    "account_state_change": lambda event: (event["account"], event["state"]["hash"]),
    "jettons_change": lambda event: tuple(map(str, event["jetton"].values())),
}
"""What events are about; those of other types are about a trace."""


def name_event(event: Any) -> Name:
    subject = SUBJECTS.get(event["type"])
    return event["type"], *(subject(event) if subject else (event["trace_id"],))


def list_names(events: list[Any], finality: str) -> list[Name]:
    return [name_event(one) for one in events if one["finality"] == finality]


def read_until(
    read: Callable[[], Any], events: list[Any], finality: str, names: Iterable[Name]
) -> list[Any]:
    """Append events until all of these have come."""
    while not {*names} <= {*list_names(events, finality)}:
        events.append(read())
    return events


def strip(value: Any) -> Any:
    """Return an event without what only a masterchain block tells, and without its id."""
    names = {"finality", "mc_block_seqno", "trace_mc_seqno_end", "event_id"}
    if isinstance(value, dict):
        return {name: strip(one) for name, one in value.items() if name not in names}
    return [strip(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def piped(tmp_path: Path, bundles: list[McBundle]) -> Iterator[Piped]:
    with (
        closing(SimulatedNode(tmp_path / "db")) as node,
        closing(Piped(tmp_path, node, bundles[:LAST], detect_contracts=True)) as made,
    ):
        yield made


def list_signed(lake: Path) -> set[Name]:
    """Return the events about transactions of signed blocks."""
    if not (lake / CONFIRMED_FILE).exists():
        return set()
    rows = read_confirmed(lake).tables["transactions"]
    return {("transactions", encode_bytes(one)) for one in rows["hash"].to_pylist()}


def test_every_event_is_confirmed_once_and_then_finalized_once(
    piped: Piped, bundles: list[McBundle]
) -> None:
    first = read_state(piped.lake).number + 1
    signed, events = set[Name](), list[Any]()
    with (
        serve(piped.lake) as server,
        server.stream(min_finality="confirmed") as frames,
        server.stream() as patient,
        connect(server.socket_url, max_size=None) as socket,
    ):
        socket.send('{"operation": "subscribe", "min_finality": "confirmed"}')
        assert "subscribed" in str(socket.recv(timeout=WAIT_S))
        for bundle in bundles[LAST : LAST + 12]:
            for block in bundle.blocks[1:]:
                piped.tell(piped.node.sign(block))
                signed |= list_signed(piped.lake)
                read_until(frames.read, events, "confirmed", signed)
            piped.node.write(bundle)
            piped.tell()
        numbers = range(first, read_state(piped.lake).number + 1)
        final = [msgspec.json.decode(one.body) for one in list_events(piped.lake, numbers)]
        names = list(map(name_event, final))
        read_until(frames.read, events, "finalized", names)
        assert read_until(patient.read, [], "finalized", names) == final

        def receive() -> Any:
            return msgspec.json.decode(socket.recv(timeout=WAIT_S))

        messages = read_until(receive, [], "finalized", names)
    assert len(signed) > 50
    for sent in (events, messages):
        by_name = {name: strip(one) for name, one in zip(names, final, strict=True)}
        assert [strip(one) for one in sent if one["finality"] == "finalized"] == [*by_name.values()]
        confirmed = [one for one in sent if one["finality"] == "confirmed"]
        assert {one["type"] for one in confirmed} == set(TYPES)
        for one in confirmed:
            assert strip(one) == by_name.pop(name_event(one)), "each once"
        for rest in by_name.values():
            assert '"-1:' in msgspec.json.encode(rest).decode(), "only the masterchain's are not"


def test_a_block_that_is_not_committed_is_withdrawn(piped: Piped, bundles: list[McBundle]) -> None:
    """Also for a client that has come back to another server meanwhile."""
    before, events = bundles[LAST - 1], list[Any]()
    other = displace(bundles[LAST + 12].blocks[1], before.blocks[0].id, before.blocks[1].id)
    with serve(piped.lake) as server, server.stream(min_finality="confirmed") as frames:
        last = frames.id
        piped.tell(piped.node.sign(other))
        signed = list_signed(piped.lake)
        assert signed
        read_until(frames.read, [], "confirmed", signed)
    members = read_confirmed(piped.lake).tables["transaction_traces"]
    traces = {("trace_invalidated", encode_bytes(one)) for one in members["trace_id"].to_pylist()}
    with serve(piped.lake) as server, server.stream(last, min_finality="confirmed") as again:
        for one in bundles[LAST : LAST + 2]:
            piped.node.write(one)
            piped.tell()
        final = list_events(piped.lake, [read_state(piped.lake).number])
        read_until(
            again.read, events, "finalized", [name_event(msgspec.json.decode(final[-1].body))]
        )
    assert sorted(list_names(events, "confirmed")) == sorted(traces)
    assert not signed & {*list_names(events, "finalized")}


def test_of_two_forks_the_first_is_confirmed(piped: Piped, bundles: list[McBundle]) -> None:
    """Another validator set may sign another block of the same seqno before either is committed."""
    before, events = bundles[LAST - 1], list[Any]()
    one, two = (
        displace(bundles[LAST + at].blocks[1], before.blocks[0].id, before.blocks[1].id)
        for at in (12, 10)
    )
    assert one.id.seqno == two.id.seqno == bundles[LAST].blocks[1].id.seqno
    with serve(piped.lake) as server, server.stream(min_finality="confirmed") as frames:
        piped.tell(piped.node.sign(one))
        signed = list_signed(piped.lake)
        read_until(frames.read, events, "confirmed", signed)
        piped.tell(piped.node.sign(two))
        assert list_signed(piped.lake) == signed
        for bundle in bundles[LAST : LAST + 2]:
            piped.node.write(bundle)
            piped.tell()
        last = list_events(piped.lake, [read_state(piped.lake).number])[-1]
        read_until(frames.read, events, "finalized", [name_event(msgspec.json.decode(last.body))])
    confirmed = list_names(events, "confirmed")
    assert len(confirmed) == len({*confirmed})
    assert {name for name in confirmed if name[0] == "transactions"} == signed
    assert sum(name[0] == "trace_invalidated" for name in confirmed) == 2
    assert not piped.follower.notices
