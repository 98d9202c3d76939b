"""User-defined tables over HTTP, by the example of docs/indexer.md: the holders of a jetton."""

import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pyarrow.parquet as pq
import pytest
from litestar.testing import TestClient

import tonlake
from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.lake.duck.limit import WATCH
from tonlake.lake.duck.own import OwnTable, read_own_state, write_own_state
from tonlake.lake.maintenance.own import add_table
from tonlake.lake.settings import LakeSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "indexer.md"
STATEMENT = re.search(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
PATH = "/api/tables/holder_balances"
HOLDERS = """
    select owner, arg_max(balance, day) as balance
    from holder_balances
    where jetton = $jetton
    group by owner having arg_max(balance, day) > 0
    order by all
"""
EXPECTED = """
    select ton_address(owner_workchain, owner) as owner, sum(balance) as balance
    from latest_jetton_wallets
    where ton_address(jetton_workchain, jetton) = $jetton and balance > 0
    group by all order by all
"""


@pytest.fixture(scope="module")
def lake(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "lake"
    shutil.copytree(demo_lake, folder)
    assert STATEMENT is not None
    add_table(folder, OwnTable("holder_balances", STATEMENT[1], "day"), LakeSettings())
    return folder


@pytest.fixture(scope="module")
def own(lake: Path) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(lake, patient(sql={"enabled": True}))) as client:
        yield client


def test_the_holders_of_every_jetton(lake: Path) -> None:
    opened = tonlake.open(lake)
    jettons = opened.sql("select distinct jetton from holder_balances").fetchall()
    assert jettons
    for (jetton,) in jettons:
        assert (
            opened.sql(HOLDERS, jetton=jetton).fetchall()
            == opened.sql(EXPECTED, jetton=jetton).fetchall()
        )


def test_a_page(own: TestClient[Any], lake: Path) -> None:
    rows = read_own_state(lake, "holder_balances").rows
    whole = own.get(PATH, params={"sort": "-balance,owner", "limit": 1000}).json()
    assert (whole["row_count"], whole["complete"]) == (rows, True)
    first = own.get(PATH, params={"sort": "-balance,owner", "limit": 1, "offset": 1}).json()
    assert (first["rows"], first["complete"]) == (whole["rows"][1:2], False)
    balance = whole["rows"][0][3]
    found = own.get(PATH, params={"balance.gte": balance}).json()["rows"]
    assert found == [row for row in whole["rows"] if row[3] == balance]
    parquet = own.get(PATH, headers={"Accept": "application/vnd.apache.parquet"})
    assert pq.read_table(io.BytesIO(parquet.content)).num_rows == min(rows, 100)
    listed = own.get("/api/tables").json()["tables"]
    assert [(table["name"], table["rows"]) for table in listed] == [("holder_balances", rows)]


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"nothing": "1"}, "not a filter"),
        ({"balance.like": "1"}, "not a filter"),
        ({"balance.gt": "many"}, "many"),
        ({"sort": "x; drop"}, "takes columns"),
        ({"limit": "1001"}, "from 0 to 1,000"),
        ({"balance.gt": ["1"] * 101}, "at most 100"),
        ({"format": "html"}, "format is one of"),
    ],
)
def test_wrong_requests(own: TestClient[Any], parameters: dict[str, Any], complaint: str) -> None:
    answer = own.get(PATH, params=parameters)
    assert (answer.status_code, complaint in answer.json()["error"]) == (422, True), answer.text


def test_a_statement_that_takes_too_long(own: TestClient[Any]) -> None:
    stopped = duckdb.InterruptException("stopped")
    with mock.patch.object(WATCH, "limit", side_effect=stopped):
        answer = own.get(PATH)
    assert (answer.status_code, "took longer than" in answer.json()["error"]) == (503, True)


def test_unknown_tables_metrics_and_sql(own: TestClient[Any]) -> None:
    assert own.get("/api/tables/messages").status_code == 404
    assert 'tonlake_own_table_failing{table="holder_balances"} 0.0' in own.get("/metrics").text
    counted = own.post("/sql", json={"query": "select count(*) from holder_balances"})
    assert counted.json()["rows"][0][0] > 0
    page = own.get("/sql", headers={"Accept": "text/html"})
    assert "holder_balances" in page.text


def test_a_table_that_fails_warns(own: TestClient[Any], lake: Path) -> None:
    state = read_own_state(lake, "holder_balances")
    failed = type(state)(state.commit, state.columns, state.parts, "no more", 9)
    write_own_state(lake, "holder_balances", failed)
    assert "it fails since" in own.get(PATH).headers["X-Tonlake-Warning"]
    write_own_state(lake, "holder_balances", state)
