"""SQL over HTTP: statements, formats, and refusals."""

import csv
import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from litestar.testing import TestClient

import tonlake
from tests.commands import run
from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.api.sql import routes

QUERY = "select workchain, count(*) as blocks from blocks group by all order by workchain"


@pytest.fixture(scope="module")
def sql(demo_lake: Path) -> Iterator[TestClient[Any]]:
    settings = patient(sql={"enabled": True, "rows": 1000})
    with (
        mock.patch.object(routes, "TEXT_BYTES", 2000),
        TestClient(create_app(demo_lake, settings)) as client,
    ):
        yield client


def test_off_unless_enabled(client: TestClient[Any]) -> None:
    for answer in (client.get("/sql", params={"query": QUERY}), client.post("/sql", content=QUERY)):
        assert answer.status_code == 403
        assert "[sql] enabled" in answer.json()["error"]
    page = client.get("/sql", headers={"Accept": "text/html"})
    assert (page.status_code, "Not enabled." in page.text) == (200, True)


def test_json(sql: TestClient[Any], client: TestClient[Any]) -> None:
    answer = sql.post("/sql", json={"query": QUERY})
    body = answer.json()
    assert [each["name"] for each in body["columns"]] == ["workchain", "blocks"]
    assert [each["type"] for each in body["columns"]] == ["int32", "int64"]
    assert [row[0] for row in body["rows"]] == [-1, 0]
    last = client.get("/api/v3/masterchainInfo").json()["last"]["seqno"]
    assert body["rows"][0][1] == last
    assert (body["row_count"], body["complete"], body["snapshot"]) == (2, True, 1)
    assert answer.headers["X-Tonlake-Rows"] == "2"
    assert answer.headers["X-Tonlake-Snapshot"] == f"1:{last}"


def test_a_lake_that_only_its_owner_reaches(demo_lake: Path, tmp_path: Path) -> None:
    """The user of the process cannot traverse the folder, where the service runs as root."""
    folder = tmp_path / "closed"
    shutil.copytree(demo_lake, folder / "lake")
    for path in (folder / "lake", *(folder / "lake").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    folder.chmod(0o700)
    settings = patient(sql={"enabled": True})
    with TestClient(create_app(folder / "lake", settings)) as client:
        answer = client.post("/sql", json={"query": QUERY})
    assert (answer.status_code, len(answer.json()["rows"])) == (200, 2), answer.text


def test_forms(sql: TestClient[Any]) -> None:
    accept = "application/vnd.apache.arrow.stream"
    arrow = sql.get("/sql", params={"query": QUERY}, headers={"Accept": accept})
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.schema.types == [pa.int32(), pa.int64()]
    parquet = sql.post("/sql", data={"query": QUERY, "format": "parquet"})
    assert pq.read_table(io.BytesIO(parquet.content)).equals(table)
    text = sql.post("/sql", params={"format": "csv"}, content=QUERY).text
    lines = list(csv.reader(io.StringIO(text)))
    assert lines[0] == table.column_names
    assert [[int(each) for each in line] for line in lines[1:]] == [
        list(row.values()) for row in table.to_pylist()
    ]


def test_formulas_in_csv_are_escaped_where_that_is_asked_for(sql: TestClient[Any]) -> None:
    query = "select '=1+1' as a, -1 as b"
    text = sql.post("/sql", params={"format": "csv", "csv_safe": "1"}, content=query).text
    assert text == "a,b\n'=1+1,-1\n"


def test_rows_have_a_bound(sql: TestClient[Any]) -> None:
    answer = sql.post("/sql", content="from range(1001)")
    assert (answer.json()["row_count"], answer.json()["complete"]) == (1000, False)
    assert "cut after 1000 rows" in answer.headers["X-Tonlake-Warning"]


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("", 400, "query is required"),
        ("  ", 400, "query is required"),
        ("select 1 as " + "a" * 2000, 422, "more than 2,000 bytes"),
    ],
)
def test_refused_before_it_runs(sql: TestClient[Any], query: str, status: int, words: str) -> None:
    answer = sql.post("/sql", content=query)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True)


def test_a_statement_that_cannot_be_answered(sql: TestClient[Any], demo_lake: Path) -> None:
    answer = sql.post("/sql", content="select nobody from blocks, read_text('x')")
    assert answer.status_code == 422
    assert str(demo_lake) not in answer.text


@pytest.mark.parametrize("form", ["xml", "table"])
def test_an_unknown_form(sql: TestClient[Any], form: str) -> None:
    answer = sql.get("/sql", params={"query": QUERY, "format": form})
    assert answer.status_code == 422
    assert "json, csv, arrow, parquet, html" in answer.json()["error"]


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"query": 1}', b'{"query": "x", "a": 1}', b"\xff"])
def test_a_body_that_is_none(sql: TestClient[Any], body: bytes) -> None:
    answer = sql.post("/sql", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, "body" in answer.json()["error"]) == (422, True)


def test_the_page_shows_rows_and_a_picture(sql: TestClient[Any]) -> None:
    query = "select 'a<b' as name, 3 as number union all select null, 4"
    page = sql.get("/sql", params={"query": query, "format": "html"})
    assert page.status_code == 200
    assert "2 rows" in page.text
    assert "a&lt;b" in page.text
    assert "a<b" not in page.text
    assert 'aria-label="number by name, as bars"' in page.text
    assert "format=parquet" in page.text


def test_the_page_draws_what_is_chosen(sql: TestClient[Any]) -> None:
    query = "select gen_utime, seqno, tx_count, workchain from blocks limit 9"
    chosen = {"query": query, "format": "html", "chart": "scatter", "x": "seqno", "y": "tx_count"}
    page = sql.get("/sql", params=chosen).text
    assert 'aria-label="tx_count by seqno, as points"' in page
    assert page.count("<circle") == 9
    assert "<option selected>scatter</option>" in page
    unfit = sql.get("/sql", params=chosen | {"y": ["tx_count", "<i>"]})
    assert (unfit.status_code, "No chart: the result has no column &lt;i&gt;." in unfit.text) == (
        200,
        True,
    )
    wrong = sql.get("/sql", params=chosen | {"chart": "pie"})
    assert (wrong.status_code, "chart is one of auto, bar, line" in wrong.text) == (422, True)


def test_the_page_links_accounts_and_hashes(sql: TestClient[Any], demo_lake: Path) -> None:
    query = "select workchain, account, hash from transactions order by lt limit 1"
    workchain, account, digest = tonlake.open(demo_lake).sql(query).fetchall()[0]
    page = sql.get("/sql", params={"query": query, "format": "html"}).text
    for path in (
        f"/account/{workchain}%3A{account.hex().upper()}",
        f"/transaction/{digest.hex()}",
    ):
        assert f'href="{path}"' in page
        assert sql.get(path.replace("%3A", ":"), follow_redirects=False).status_code == 200


def test_only_the_editor_may_add_styles(sql: TestClient[Any]) -> None:
    first, second = sql.get("/sql"), sql.get("/sql")
    nonces = {re.search(r'data-nonce="([^"]{16,})"', page.text)[1] for page in (first, second)}  # type: ignore[index]
    assert len(nonces) == 2
    policy = first.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self'; ")
    assert re.search(r"style-src 'self' 'nonce-[^' ]+'$", policy)
    assert "unsafe" not in policy


def test_the_files_of_the_page_are_sent_once(sql: TestClient[Any]) -> None:
    page = sql.get("/sql").text
    files = re.findall(r'(?:src|href)="(/explorer/[^"]+)"', page)
    assert {"/explorer/codemirror.js", "/explorer/sql.js", "/explorer/sql.css"} <= set(files)
    for path in files:
        first = sql.get(path)
        again = sql.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_the_page_lists_tables_and_shows_errors(sql: TestClient[Any]) -> None:
    start = sql.get("/sql").text
    for word in (
        "transactions",
        "latest_account_states",
        "mc_seqno",
        "Contracts that use most gas",
        "balances_at(ts)",
    ):
        assert word in start
    wrong = sql.get("/sql", params={"query": "selec <1>", "format": "html"})
    assert (wrong.status_code, "syntax error" in wrong.text) == (422, True)
    assert "selec &lt;1&gt;" in wrong.text


TRANSFER = "transfer#0f8a7ea5 query_id:uint64 amount:Coins destination:MsgAddress = Body"
TOTAL = "select sum(amount)::varchar as total from transfer"


def test_a_signature_is_a_table(sql: TestClient[Any], demo_lake: Path) -> None:
    body = {"query": TOTAL, "signature": TRANSFER}
    expected = tonlake.open(demo_lake).sql(TOTAL, signature=TRANSFER).fetchall()[0][0]
    beside = "from jetton_transfer where exists (from blocks)"  # not only the table
    named = {"query": f"select sum(amount)::varchar {beside}"}
    by_name = sql.post("/sql", json=named | {"signature": ["jetton_transfer", TRANSFER]})
    assert by_name.json()["rows"] == [[expected]] != [[None]]
    form = sql.post("/sql", data=body | {"format": "csv"})
    assert form.text.split()[1].strip('"') == expected


def test_bodies_that_do_not_fit_are_counted(sql: TestClient[Any]) -> None:
    tight = "transfer#0f8a7ea5 a:bits1023 = Body"
    query = "select (select count(*) from transfer), count(*), count(body) from transfer_misfits"
    answer = sql.post("/sql", json={"query": query, "signature": tight})
    fitting, listed, bodies = answer.json()["rows"][0]
    assert (fitting, listed > 0, bodies) == (0, True, listed)
    assert "do not fit" in answer.headers["X-Tonlake-Warning"]


@pytest.mark.parametrize(
    ("signature", "complaint"),
    [
        ("messages#00000001 = B", "a table messages already exists"),
        ("a#00000001 x:^" + "[ y:" * 9000, "invalid TL-B statement"),
        ([TRANSFER] * 21, "at most 20"),
    ],
)
def test_hostile_signatures(sql: TestClient[Any], signature: object, complaint: str) -> None:
    answer = sql.post("/sql", json={"query": "select 1", "signature": signature})
    assert (answer.status_code, complaint in answer.json()["error"]) == (422, True), answer.text


def test_every_door_says_which_accounts_are_not_known(cut_lake: Path) -> None:
    statement = "select count(*) from v_balances"
    note = "v_balances has only accounts that masterchain blocks 101..110 touched"
    for arguments in (["sql", statement], ["query", "whales"]):
        ran = run(*arguments, "--lake", cut_lake)
        assert (ran.exit_code, "has only accounts" in ran.stderr) == (0, True), ran.output
        assert "has only accounts" not in ran.stdout
    lake = tonlake.open(cut_lake)
    found = lake.sql(statement)
    assert found.notes[0].startswith(note)
    assert note in repr(found)
    assert note in found._repr_html_()
    assert lake.query("whales").notes
    assert not lake.sql("select count(*) from transactions").notes
    with TestClient(create_app(cut_lake, patient(sql={"enabled": True}))) as asker:
        answer = asker.get("/sql", params={"query": statement})
        assert note in answer.headers["X-Tonlake-Warning"]
        page = asker.get("/sql", params={"query": statement, "format": "html"})
        assert note in page.text
