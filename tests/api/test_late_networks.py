"""Lakes of genuine networks that begin late, with a baseline, answer like whole ones."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.test_pruned import OF_ACCOUNTS
from tests.conftest import read_lines, unpack
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.ingest.run.baseline import ingest_state
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.node.statefile import CellDbStates
from tonlake.lake.index.builder.rebuild import rebuild_index

pytestmark = pytest.mark.long

NETWORKS = {
    "localnet": ("localnet-db.tar.zst", ".", (300, 700, 1500)),
    "celldb-v2": ("celldb-v2/localnet-celldbv2.tar.zst", "celldb-v2", (300, 400)),
}
"""Archive, folder of facts, and first blocks; shards have split before 700 and 1500."""

ALL = "limit=1000"
LISTS = (
    *(f"v3/jetton/masters?{ALL}", f"v3/jetton/wallets?{ALL}", f"v3/nft/collections?{ALL}"),
    *(f"v3/nft/items?{ALL}", f"v3/nft/sales?{ALL}", f"v3/vesting?{ALL}"),
    *(f"v3/multisig/wallets?{ALL}", f"v3/multisig/orders?{ALL}", f"v3/topAccountsByBalance?{ALL}"),
)


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


def list_questions(facts: Path) -> list[tuple[str, dict[str, Any] | None]]:
    """Return what is asked: paths, and bodies of get-methods."""
    addresses = [
        fact["address"]
        for fact in read_lines(facts / "expected-accounts.jsonl")
        if fact["status"] != "nonexist"
    ]
    contracts = json.loads((facts / "expected.json").read_text())["contracts"]
    return [
        *((f"{path}{address}", None) for path in OF_ACCOUNTS for address in addresses),
        *((path, None) for path in LISTS),
        *(
            (f"v3/dns/records?domain={each['domain']}", None)
            for each in contracts
            if "domain" in each
        ),
        *(
            ("v3/runGetMethod", {"address": each["address"], "method": method, "stack": []})
            for each in contracts
            for method in each.get("get_methods", ())
        ),
    ]


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize("name", NETWORKS)
def test_answers_are_those_of_the_whole_chain(shared: Path, tmp_path: Path, name: str) -> None:
    """The state is of celldb: tests of the baseline compare the rows of files with its rows."""
    archive, facts, firsts = NETWORKS[name]
    node = unpack(shared / "node" / archive, tmp_path / "node")
    questions = list_questions(shared / "node" / facts)
    assert len(questions) > 3000
    answers = []
    for first in (1, *firsts):
        lake = tmp_path / f"lake-{first}"
        ingest_node(node, lake, PATIENT, first)
        if first > 1:
            with closing(open_node(node)) as source, closing(CellDb(node / "celldb")) as celldb:
                ingest_state(source, [CellDbStates(celldb)], lake, PATIENT)
        rebuild_index(lake)
        answers.append(ask(lake, questions))
    whole, *others = answers
    for first, late in zip(firsts, others, strict=True):
        wrong = [each for each in zip(questions, whole, late, strict=True) if each[1] != each[2]]
        assert not wrong, (first, len(wrong), wrong[0])
