"""Everyday questions run without parameters and have the columns that are charted."""

from datetime import date, datetime

import pytest

from tonlake.queries.errors import ParameterMismatch, QueryMalformed
from tonlake.queries.loader import Query, find_query, load_queries, parse_query
from tonlake.queries.parameter import read_parameters
from tonlake.queries.reader import Reader

QUESTIONS = [query for query in load_queries().values() if query.is_everyday]
CHART = "-- Days.\n-- chart: {}\n-- returns: date, n\nselect date, 1 as n from v_daily\n"


def test_there_are_twenty_everyday_questions() -> None:
    assert len(QUESTIONS) >= 20
    assert all(question.doc for question in QUESTIONS)
    assert sum(question.chart is not None for question in QUESTIONS) >= 15


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_runs_with_its_defaults(reader: Reader, question: Query) -> None:
    asked = reader.table(question.name)
    assert all(name in question.returns for name in asked.column_names)
    if question.chart is not None:
        drawn = {question.chart.x, *question.chart.y, question.chart.by or question.chart.x}
        assert drawn <= set(asked.column_names)


@pytest.mark.parametrize("chart", ["pie x=date y=n", "line x=date", "line y=n x=date", "bar x=a"])
def test_a_chart_that_cannot_be_read_is_refused(chart: str) -> None:
    with pytest.raises(QueryMalformed, match="unreadable chart line"):
        parse_query("x/y", CHART.format(chart))


def test_a_chart_names_series() -> None:
    query = parse_query("x/y", CHART.format("bar x=date y=n,m by=pool"))
    assert query.chart is not None
    assert (query.chart.kind, query.chart.x, query.chart.y, query.chart.by) == (
        *("bar", "date", ("n", "m"), "pool"),
    )
    assert query.doc == "Days."


def test_times_and_addresses_are_read() -> None:
    holders = find_query("jetton_holders")
    elector = "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"
    values = read_parameters(holders, {"master": elector, "at": "2026-11-21T06:00:00+02:00"})
    assert values == {"master": "-1:" + "3" * 64, "at": datetime(2026, 11, 21, 4)}  # noqa: DTZ001
    days = read_parameters(find_query("active_wallets"), {"first": "2026-11-21", "last": "null"})
    assert days == {"first": date(2026, 11, 21), "last": None}
    for name, text in (("master", elector[:-1] + "G"), ("at", "yesterday")):
        with pytest.raises(ParameterMismatch, match=f"parameter {name}="):
            read_parameters(holders, {name: text})
