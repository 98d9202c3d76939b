"""Lakes of genuine networks that begin late, with a baseline, answer like whole ones."""

import json
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from litestar.testing import TestClient

from tests.api.test_pruned import OF_ACCOUNTS
from tests.conftest import unpack
from tests.ingest.facts import read_facts
from tests.ingest.statefiles import Split, write_states
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.ingest.run.baseline import ingest_state
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.node.statefile import CellDbStates, StateFiles, StateStore
from tonlake.lake.index.builder.rebuild import rebuild_index

pytestmark = pytest.mark.long

ARCHIVES = {
    "localnet": ("localnet-db.tar.zst", "."),
    "celldb-v2": ("celldb-v2/localnet-celldbv2.tar.zst", "celldb-v2"),
}
SPLIT = Split(bits=1, proof=True, relabelled=True)
LATE = [
    *(("localnet", first, "celldb") for first in (300, 700, 1500)),
    *(("celldb-v2", 400, "celldb"), ("celldb-v2", 300, "file"), ("celldb-v2", 400, "split")),
    *(("localnet", 700, "file"), ("localnet", 1500, "split")),
]
"""Networks, first blocks and sources of the state; shards have split before 700 and 1500."""

ALL = "limit=1000"
LISTS = (
    *(f"v3/jetton/masters?{ALL}", f"v3/jetton/wallets?{ALL}", f"v3/nft/collections?{ALL}"),
    *(f"v3/nft/items?{ALL}", f"v3/nft/sales?{ALL}", f"v3/vesting?{ALL}"),
    *(f"v3/multisig/wallets?{ALL}", f"v3/multisig/orders?{ALL}", f"v3/topAccountsByBalance?{ALL}"),
)


class Network(NamedTuple):
    """A node's database, what was asked of the lake of the whole chain, and its answers."""

    node: Path
    questions: list[tuple[str, dict[str, Any] | None]]
    answers: list[Any]


def answer(client: TestClient[Any], path: str, body: dict[str, Any] | None) -> Any:
    """Return status and body; contracts, whose order a state does not show, by their text."""
    found = client.post(f"/api/{path}", json=body) if body else client.get(f"/api/{path}")
    content = found.json()
    if isinstance(content, dict):
        content.pop("@extra", None)
    if "?owner_address=" in path:
        name = next(iter(content))
        content[name] = sorted(json.dumps(row, sort_keys=True) for row in content[name])
    if path in LISTS:
        rows = content if isinstance(content, list) else next(iter(content.values()))
        # A destroyed account is not in the state.
        rows = [row for row in rows if not isinstance(row, dict) or row.get("balance") != "0"]
        content = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return found.status_code, content


def ask(lake: Path, questions: list[tuple[str, dict[str, Any] | None]]) -> list[Any]:
    with TestClient(create_app(lake, PATIENT)) as client:
        return [answer(client, *question) for question in questions]


@pytest.fixture(scope="module")
def networks() -> dict[str, Network]:
    """Hold the networks that were asked about."""
    return {}


def find_network(name: str, networks: dict[str, Network], shared: Path, folder: Path) -> Network:
    """Return a network, with the answers of its whole chain, which is ingested once."""
    if name not in networks:
        archive, facts = ARCHIVES[name]
        node = unpack(shared / "node" / archive, folder)
        ingest_node(node, folder / "lake", PATIENT, 1)
        rebuild_index(folder / "lake")
        summary = json.loads((shared / "node" / facts / "expected.json").read_text())
        accounts = read_facts(shared / "node" / facts, "accounts")
        questions: list[tuple[str, dict[str, Any] | None]] = [
            (f"{path}{fact['address']}", None)
            for path in OF_ACCOUNTS
            for fact in accounts
            if fact["status"] != "nonexist"
        ]
        questions += [(path, None) for path in LISTS]
        questions += [
            ("v3/runGetMethod", {"address": each["address"], "method": method, "stack": []})
            for each in summary["contracts"]
            for method in each.get("get_methods", ())
        ]
        networks[name] = Network(node, questions, ask(folder / "lake", questions))
    return networks[name]


def bring_state(node: Path, lake: Path, folder: Path, first: int, kind: str) -> None:
    """Bring the baseline out of celldb, or out of files that are written from it."""
    with ExitStack() as opened:
        if kind == "celldb":
            celldb = opened.enter_context(closing(CellDb(node / "celldb")))
            stores: list[StateStore] = [CellDbStates(celldb)]
        else:
            write_states(node, folder, first - 1, SPLIT if kind == "split" else None)
            node, stores = folder, [StateFiles(folder)]
        source = opened.enter_context(closing(open_node(node)))
        ingest_state(source, stores, lake, PATIENT)


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize(("name", "first", "kind"), LATE)
def test_answers_are_those_of_the_whole_chain(
    networks: dict[str, Network],
    shared: Path,
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    name: str,
    first: int,
    kind: str,
) -> None:
    network = find_network(name, networks, shared, tmp_path_factory.mktemp(name))
    lake = tmp_path / "lake"
    ingest_node(network.node, lake, PATIENT, first)
    bring_state(network.node, lake, tmp_path / "db", first, kind)
    rebuild_index(lake)
    found = ask(lake, network.questions)
    wrong = [
        (question, whole, late)
        for question, whole, late in zip(network.questions, network.answers, found, strict=True)
        if whole != late
    ]
    assert len(network.questions) > 3000
    assert not wrong, (len(wrong), wrong[0])
