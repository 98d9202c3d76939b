"""The page: its schema equals the database's, its examples run, and cells have text and links."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tonlake.api.sql import page
from tonlake.lake.duck.answer import ask
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.loader import load_queries, parse_query

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_view_has_the_columns_of_the_database(demo_lake: Path) -> None:
    lake = connect(open_snapshot(demo_lake))
    listed = [view for group in page.list_views().values() for view in group]
    for view in listed:
        assert view.doc, view.name
        assert all(column.doc for column in view.columns), view.name
        if view.title == view.name:
            relation = lake.sql("from query_table($name)", params={"name": view.name})
            names = [column.name for column in view.columns]
            assert sorted(names) == sorted(relation.columns), view.name
    shown = {
        name
        for (name,) in lake.sql(
            "select view_name from duckdb_views() where not internal"
        ).fetchall()
    }
    assert shown <= {view.name for view in listed}


def test_every_macro_is_there_and_documented() -> None:
    text = (DOCS / "sql.md").read_text(encoding="utf-8")
    for macro in page.list_macros():
        assert macro.title.startswith(f"{macro.name}(")
        assert macro.doc
        assert f"`{macro.name}(" in text, macro.name


@pytest.fixture(scope="module")
def columns(demo_lake: Path) -> dict[str, list[str]]:
    """What each example returns."""
    snapshot = open_snapshot(demo_lake)
    lake = connect(snapshot)
    return {
        each.title: ask(lake, snapshot, each.query).read_all().column_names
        for each in page.list_examples()
    }


def test_twenty_examples_run(columns: dict[str, list[str]]) -> None:
    assert len(columns) == len(page.list_examples()) >= 20
    everyday = {name for name in load_queries() if name.startswith("everyday/")}
    assert len(page.list_examples()) == len(everyday)


def test_an_example_chooses_columns_that_its_answer_has(columns: dict[str, list[str]]) -> None:
    charts = 0
    for example in page.list_examples():
        fields = parse_qs(urlsplit(example.path).query)
        assert fields["query"] == [example.query]
        chosen = [*fields.get("x", []), *fields.get("y", []), *fields.get("by", [])]
        assert set(chosen) <= set(columns[example.title]), example.title
        charts += fields["chart"] != ["none"]
    assert charts > 10


def test_parameters_become_their_defaults() -> None:
    query = parse_query(
        "everyday/test",
        "-- What it is for. And more.\n"
        "--\n"
        "-- $first integer = 7     the first\n"
        "-- $any   boolean = null  whether any\n"
        "--\n"
        "-- returns: a, b\n"
        "select $first as a, $any as b, '$.path' as c\n",
    )
    assert page.write_statement(query) == (
        "-- What it is for. And more.\n"
        "--\n"
        "-- $first integer = 7     the first\n"
        "-- $any   boolean = null  whether any\n"
        "select /* first */ 7 as a, /* any */ null as b, '$.path' as c"
    )


HEX = "ab" * 32
ELECTOR = "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"
RAW = "-1:" + "3" * 64


@pytest.mark.parametrize(
    ("name", "value", "row", "path"),
    [
        ("any", ELECTOR, {}, f"/account/{RAW.replace(':', '%3A')}"),
        ("any", RAW, {}, f"/account/{RAW.replace(':', '%3A')}"),
        ("any", ELECTOR[:-1] + "A", {}, None),
        ("account", HEX, {"workchain": 0}, f"/account/0%3A{HEX.upper()}"),
        ("tx_account", HEX, {"tx_workchain": -1}, f"/account/-1%3A{HEX.upper()}"),
        ("hash", HEX, {"param": 34}, None),
        ("sender_id", HEX, {"sender_workchain": 0}, f"/account/0%3A{HEX.upper()}"),
        ("sender_id", HEX, {"sender_workchain": None}, f"/search?q={HEX}"),
        ("hash", HEX.upper(), {}, f"/transaction/{HEX}"),
        ("trace_id", HEX, {}, f"/trace/{HEX}"),
        ("msg_hash", HEX, {}, f"/search?q={HEX}"),
        ("code", "A" * 42 + "/=", {}, f"/search?q={'A' * 42}%2F%3D"),
        *(
            (name, HEX, {}, None)
            for name in ("code_hash", "account_state_hash_after", "public_key", "action_id")
        ),
        *(("any", value, {}, None) for value in (None, 5, True, "word", HEX[1:], [HEX])),
    ],
)
def test_pages(name: str, value: object, row: dict[str, Any], path: str | None) -> None:
    assert page.find_page(name, value, row) == path


def test_a_row() -> None:
    assert page.write_row(["workchain", "account", "n"], [0, HEX, None]) == [
        page.ShownCell("0"),
        page.ShownCell(HEX, f"/account/0%3A{HEX.upper()}"),
        page.ShownCell(None),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, None), (True, "true"), (False, "false"), (1.5, "1.5"), ([1, "a"], '[1,"a"]')),
        ("x" * 200, "x" * page.MAX_CHARACTERS + "…"),
    ],
)
def test_texts(value: object, text: str | None) -> None:
    assert page.write_value(value) == text
