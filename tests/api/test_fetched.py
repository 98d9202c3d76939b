"""Accounts missing from a lake are fetched from lite servers, proven, and stored."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from litestar.testing import TestClient

from tests.conftest import Facts
from tests.ingest.source.liteserver.server import SimulatedServer, make_chain
from tests.ingest.source.liteserver.states import ProvenStates
from tests.ingest.source.liteserver.test_source import write_config
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT, patient
from tonlake.api.app import create_app
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.liteserver.query import StateServers
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import FETCHED_ACCOUNTS

FIRST, LAST = 225, 238
NEVER_SEEN = "0:" + "5e" * 32
UNKNOWN = "LITE_SERVER_ERROR: state already gc'd"


@pytest.fixture(scope="module")
def states(demo_node: Path) -> Iterator[ProvenStates]:
    """What a genuine node has of its states."""
    with (
        closing(open_node(demo_node, proofs=True)) as source,
        closing(CellDb(demo_node / "celldb")) as celldb,
    ):
        yield ProvenStates(source, celldb)


@pytest.fixture(scope="module")
def late(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of the last blocks, without a baseline; only for reading."""
    lake = tmp_path_factory.mktemp("late") / "lake"
    ingest_node(demo_node, lake, PATIENT, FIRST, LAST)
    return lake


@pytest.fixture(scope="module")
def untouched(late: Path, facts: Facts) -> list[str]:
    """The accounts that exist and that the lake does not know."""
    path = "/api/v2/getAddressBalance"
    with TestClient(create_app(late, PATIENT)) as client:
        found = [
            fact["address"]
            for fact in facts.accounts
            if fact["status"] != "nonexist"
            and client.get(path, params={"address": fact["address"]}).status_code == 500
        ]
    assert len(found) > 20
    return found


@pytest.fixture
def server(demo_node: Path, states: ProvenStates) -> Iterator[SimulatedServer]:
    """A lite server with the states of the node."""
    with closing(open_node(demo_node)) as source:
        chain = make_chain([], source.zero_states())
    server = SimulatedServer(chain)
    server.states = states
    with server.run():
        yield server


class Place(NamedTuple):
    """A lake to write into, and what it is compared with and fetched from."""

    whole: TestClient[Any]
    server: SimulatedServer
    untouched: list[str]
    lake: Path

    @contextmanager
    def asked(
        self, *servers: SimulatedServer, kept: int = 1000, timeout_ms: int = 60_000
    ) -> Iterator[TestClient[Any]]:
        """Ask a service that fetches from some servers, by default from the one of the node."""
        config = write_config(self.lake.parent / "config.json", *(servers or (self.server,)))
        found = StateServers(config, timeout_ms=timeout_ms, parallel_queries=4)
        settings = patient(liteserver={"kept_accounts": kept})
        with TestClient(create_app(self.lake, settings, servers=found)) as client:
            yield client

    def count_kept(self) -> int:
        files = read_state(self.lake).by_table.get(FETCHED_ACCOUNTS.name, ())
        return sum(file.rows for file in files)


@pytest.fixture
def place(
    client: TestClient[Any],
    late: Path,
    server: SimulatedServer,
    untouched: list[str],
    tmp_path: Path,
) -> Place:
    return Place(client, server, untouched, shutil.copytree(late, tmp_path / "lake"))


PATHS = (
    ("/api/v2/getAddressInformation", ("@extra",)),
    ("/api/v2/getExtendedAddressInformation", ("@extra",)),
    ("/api/v2/getShardAccountCell", ("@extra",)),
    ("/api/v2/getWalletInformation", ("@extra",)),
    ("/api/v3/addressInformation", ()),
    ("/api/v3/walletStates", ("address_book", "metadata")),
)


def compare(
    whole: TestClient[Any],
    client: TestClient[Any],
    addresses: list[str],
    paths: tuple[tuple[str, tuple[str, ...]], ...] = PATHS[2:3],
) -> None:
    """Compare answers, by default with whole states alone."""
    for path, moment in paths:
        for address in addresses:
            answers = [each.get(path, params={"address": address}) for each in (whole, client)]
            bodies = [
                {name: value for name, value in answer.json().items() if name not in moment}
                for answer in answers
            ]
            assert bodies[0] == bodies[1], (path, address)
            assert answers[0].status_code == answers[1].status_code


def test_states_are_those_of_the_whole_lake(place: Place) -> None:
    client, server, untouched, lake = place
    with place.asked() as found:
        compare(client, found, untouched[:24], PATHS)
        compare(client, found, untouched)
        assert server.asked.count("getAccountState") == len(untouched), "each once"
        states = found.get("/api/v3/accountStates", params={"address": untouched[:10]}).json()
        assert len(states["accounts"]) == 10
        never = found.get("/api/v2/getAddressInformation", params={"address": NEVER_SEEN})
        assert never.json()["result"]["state"] == "uninitialized"
        assert (
            found.get("/api/v3/accountStates", params={"address": NEVER_SEEN}).json()["accounts"]
            == []
        )
    assert place.count_kept() == len(untouched)
    assert not verify_lake(lake).damage
    server.refusal = 651, "offline"
    with TestClient(create_app(lake, PATIENT)) as offline:
        compare(client, offline, untouched)
        refused = offline.get("/api/v2/getAddressInformation", params={"address": NEVER_SEEN})
        assert refused.json()["error"].startswith(UNKNOWN)


@pytest.mark.usefixtures("tvm")
def test_get_methods(place: Place, facts: Facts) -> None:
    client, server, untouched, _lake = place
    runs = 0
    with place.asked() as found:
        for contract in facts.summary["contracts"]:
            if contract["address"] not in untouched:
                continue
            for number, method in enumerate(contract.get("get_methods", ())):
                body = {"address": contract["address"], "method": method, "stack": []}
                for path in ("/api/v3/runGetMethod", "/api/v2/runGetMethod")[: 2 - min(number, 1)]:
                    answers = [each.post(path, json=body).json() for each in (client, found)]
                    for answer in answers:
                        answer.pop("@extra", None)
                        result = answer.get("result", {})
                        result.pop("@extra", None)
                    assert answers[0] == answers[1], (path, contract["address"], method)
                runs += 1
    assert runs > 10
    assert server.asked.count("getConfigAll") == 1


def alter(name: str, field: str, change: Callable[[bytes], bytes]) -> Any:
    def altered(kind: str, answer: dict[str, Any]) -> dict[str, Any]:
        return answer | {field: change(answer[field])} if kind == name else answer

    return altered


def test_what_servers_may_not_send(place: Place, states: ProvenStates) -> None:
    address, other = place.untouched[:2]
    workchain, account = other.split(":")
    proven = states.prove_account(LAST, int(workchain), bytes.fromhex(account))
    older = states.prove_account(LAST - 1, int(workchain), bytes.fromhex(account))
    assert proven is not None
    assert older is not None
    hostile = {
        "another account's state": alter("accountState", "state", lambda _: proven[2]),
        "no state": alter("accountState", "state", lambda _: b""),
        "another account's proof": alter("accountState", "proof", lambda _: proven[1]),
        "an older block's proof": alter("accountState", "proof", lambda _: older[1]),
        "a flipped bit": alter(
            "accountState", "proof", lambda boc: boc[:-40] + bytes((boc[-40] ^ 1,)) + boc[-39:]
        ),
        "no proof": alter("accountState", "proof", lambda _: b""),
        "one proof alone": alter("accountState", "proof", lambda _: states.prove_config(LAST)[0]),
    }
    for what, altered in hostile.items():
        place.server.altered = altered
        with place.asked() as found:
            answer = found.get("/api/v2/getAddressInformation", params={"address": address})
            assert answer.status_code == 500, what
            assert answer.json()["error"].startswith(UNKNOWN), what
            assert "could not be fetched" in answer.headers["x-tonlake-warning"], what
            listed = found.get("/api/v3/accountStates", params={"address": address})
            assert listed.json()["accounts"] == [], what
            assert listed.headers["cache-control"] == "no-store"
    assert place.count_kept() == 0


def test_servers_that_are_slow_gone_or_behind(place: Place) -> None:
    client, server, untouched, _lake = place
    address = untouched[0]
    with ExitStack() as stack:
        silent = stack.enter_context(SimulatedServer(server.chain).run())
        silent.is_silent = True
        behind = stack.enter_context(SimulatedServer(server.chain).run())
        with place.asked(silent, behind, timeout_ms=500) as found:
            for _ in range(2):
                answer = found.get("/api/v2/getAddressInformation", params={"address": address})
                assert answer.json()["error"].startswith(UNKNOWN)
        with place.asked(silent, behind, server, timeout_ms=500) as found:
            compare(client, found, [address])


def test_the_table_is_bounded_and_a_copy_keeps_no_account(place: Place) -> None:
    client, _server, untouched, lake = place
    with place.asked(kept=5) as found:
        for address in untouched[:12]:
            found.get("/api/v2/getAddressBalance", params={"address": address})
    assert place.count_kept() == 5
    before = read_state(lake).number
    with place.asked(kept=0) as found:
        answer = found.get("/api/v2/getAddressBalance", params={"address": untouched[20]})
        assert answer.status_code == 200
    (lake / "_pull").mkdir()
    with place.asked() as found:
        compare(client, found, [untouched[20]])
    assert read_state(lake).number == before


def test_a_block_of_the_lake_counts_more(place: Place, demo_node: Path, facts: Facts) -> None:
    """Accounts are fetched as of a block, and later blocks touch some of them."""
    client, server, _untouched, lake = place
    shutil.rmtree(lake)
    with closing(open_node(demo_node)) as source:
        ingest(source, lake, Span(200, 210), PATIENT)
        some = facts.accounts[::2]
        addresses = [fact["address"] for fact in some if fact["status"] != "nonexist"]
        with place.asked() as found:
            for address in addresses:
                found.get("/api/v2/getAddressBalance", params={"address": address})
        assert place.count_kept() > 10
        ingest(source, lake, Span(211, LAST), PATIENT)
        ingest(source, lake, Span(190, 199), PATIENT)
    with place.asked() as found:
        server.asked.clear()
        compare(client, found, addresses)
        assert server.asked.count("getAccountState") < len(addresses) // 2
    with TestClient(create_app(lake, PATIENT)) as offline:
        compare(client, offline, addresses)
        unknown = [
            offline.get(
                "/api/v2/getAddressBalance", params={"address": address, "seqno": 195}
            ).status_code
            for address in addresses
        ]
        assert unknown.count(500) > 10, "what was fetched as of 210 may be newer than 195"
    assert not verify_lake(lake).damage
