"""A lake that begins late, with a baseline, knows accounts as the lake of the whole chain does."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from msgspec import UNSET

from tests.api.test_late_networks import LISTS, answer, list_questions
from tests.commands import run
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.ingest.run.baseline import ingest_state
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.node.statefile import CellDbStates
from tonlake.ingest.span import Span
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.snapshot import WHOLE, Selection
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.removal import prune_lake
from tonlake.lake.maintenance.verify import verify_lake

FIRST, BORDER, MIDDLE, LAST = 100, 140, 180, 238
NEVER_SEEN = "0:" + "5e" * 32
FILLED = LISTS[:4]
"""Lists of contracts that the demo network has."""

WAYS = [
    "pruned",
    *(pytest.param(way, marks=pytest.mark.long) for way in ("by-index", "by-sql", "copied")),
]


@pytest.fixture(scope="module", params=WAYS)
def late_lake(
    request: pytest.FixtureRequest, demo_node: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Make a lake from block 100 on, with a baseline; pruned, it follows on after."""
    lake = tmp_path_factory.mktemp("late") / "lake"
    with closing(open_node(demo_node)) as source, closing(CellDb(demo_node / "celldb")) as celldb:
        ingest(source, lake, Span(FIRST, MIDDLE), PATIENT)
        ingest_state(source, [CellDbStates(celldb)], lake, PATIENT)
        if request.param == "pruned":
            assert prune_lake(lake, BORDER, PATIENT.lake).ranges == ((FIRST, BORDER - 1),)
            ingest_state(source, [CellDbStates(celldb)], lake, PATIENT)
        ingest(source, lake, Span(MIDDLE + 1, LAST), PATIENT)
    if request.param == "copied":
        copy_lake(lake, lake.with_name("copy"))
        lake = lake.with_name("copy")
    if request.param != "by-sql":
        rebuild_index(lake)
    assert not verify_lake(lake).damage
    return lake


@pytest.fixture(scope="module")
def late(late_lake: Path) -> Iterator[TestClient[Any]]:
    """Ask the API over that lake."""
    with TestClient(create_app(late_lake, PATIENT)) as asker:
        yield asker


def compare(client: TestClient[Any], late: TestClient[Any], facts: Path, *, runs: bool) -> None:
    """Compare answers of both lakes: to get-methods, or to all other questions."""
    questions = [each for each in list_questions(facts) if (each[1] is not None) is runs]
    assert len(questions) > FIRST
    for question in questions:
        found = answer(late, *question)
        assert found == answer(client, *question), question
        assert question[0] not in FILLED or found[1], question


def test_answers(client: TestClient[Any], late: TestClient[Any], demo_facts: Path) -> None:
    compare(client, late, demo_facts, runs=False)


@pytest.mark.usefixtures("tvm")
def test_get_methods(client: TestClient[Any], late: TestClient[Any], demo_facts: Path) -> None:
    compare(client, late, demo_facts, runs=True)


def test_top_accounts(client: TestClient[Any], late: TestClient[Any]) -> None:
    def read(asker: TestClient[Any]) -> list[tuple[str, str]]:
        rows = asker.get("/api/v3/topAccountsByBalance", params={"limit": 1000}).json()
        return [(row["account"], row["balance"]) for row in rows if row["balance"] != "0"]

    assert read(late) == read(client)


def test_an_account_that_never_was_does_not_exist(late: TestClient[Any]) -> None:
    found = late.get("/api/v2/getAddressInformation", params={"address": NEVER_SEEN})
    assert found.json()["result"]["state"] == "uninitialized"
    found = late.get("/api/v3/accountStates", params={"address": NEVER_SEEN})
    assert found.json()["accounts"] == []
    assert "is not known" not in str(found.headers)
    found = late.get("/api/v3/jetton/masters", params={"address": NEVER_SEEN})
    assert (found.status_code, found.json()["jetton_masters"]) == (200, [])


def test_a_copy_has_the_baseline_if_it_has_all_of_it(late_lake: Path, tmp_path: Path) -> None:
    for name, selection in (("all", WHOLE), ("few", Selection(tables=("blocks", "messages")))):
        copy_lake(late_lake, tmp_path / name, selection)
    assert read_state(tmp_path / "all").baseline == read_state(late_lake).baseline
    assert read_state(tmp_path / "few").baseline is UNSET


def test_the_block_of_the_baseline_is_shown(late: TestClient[Any], late_lake: Path) -> None:
    expected = {"mc_seqno": FIRST - 1, "state_mc_seqno": FIRST - 1, "accounts": "all"}
    assert late.get("/readyz").json()["baseline"] == expected
    assert f"as of masterchain {FIRST - 1}" in late.get("/").text
    page = late.get("/lake").text
    assert f"Baseline: all accounts as of masterchain block {FIRST - 1}." in page
    pruned = read_state(late_lake).last_pruned
    assert (f"Pruned: masterchain blocks {FIRST} to {BORDER - 1}." in page) == bool(pruned)
    shown = run("status", "--lake", late_lake)
    assert f"Baseline: all accounts as of masterchain block {FIRST - 1}" in shown.output
