"""Every query that Spark supports has parameters here; the long tests run all of them."""

from pathlib import Path

from tests.queries.spark.questions import Questions
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.loader import load_queries, needs_duckdb
from tonlake.queries.parameter import bind_parameters


def test_every_query_can_be_asked(demo_lake: Path) -> None:
    questions = Questions(connect(open_snapshot(demo_lake)))
    asked = [query for query in load_queries().values() if not needs_duckdb(query)]
    assert len(asked) > 50
    for query in asked:
        for given in (questions.required(query), questions.filtered(query)):
            assert bind_parameters(query, given).keys() == query.parameters.keys(), query.name


def test_what_reads_views_for_people_needs_duckdb() -> None:
    queries = load_queries()
    assert needs_duckdb(queries["explorer/prices"])
    assert needs_duckdb(queries["explorer/named"])
    assert needs_duckdb(queries["everyday/retention"])
    assert not needs_duckdb(queries["v3/blocks"])
