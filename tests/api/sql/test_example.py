"""The examples of the page: everyday questions as statements that run as they are."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tonlake.api.sql.page import list_examples, write_statement
from tonlake.lake.duck.answer import ask
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.loader import load_queries, parse_query


@pytest.fixture(scope="module")
def columns(demo_lake: Path) -> dict[str, list[str]]:
    """What each example returns."""
    snapshot = open_snapshot(demo_lake)
    lake = connect(snapshot)
    return {
        each.title: ask(lake, snapshot, each.query).read_all().column_names
        for each in list_examples()
    }


def test_twenty_examples_run(columns: dict[str, list[str]]) -> None:
    assert len(columns) == len(list_examples()) >= 20
    everyday = {name for name in load_queries() if name.startswith("everyday/")}
    assert len(list_examples()) == len(everyday)


def test_an_example_chooses_columns_that_its_answer_has(columns: dict[str, list[str]]) -> None:
    charts = 0
    for example in list_examples():
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
    assert write_statement(query) == (
        "-- What it is for. And more.\n"
        "--\n"
        "-- $first integer = 7     the first\n"
        "-- $any   boolean = null  whether any\n"
        "select /* first */ 7 as a, /* any */ null as b, '$.path' as c"
    )
