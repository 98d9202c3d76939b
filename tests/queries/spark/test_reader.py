"""Named queries on Spark give the same answers as the local engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.lake.opened import open_views
from tests.lake.rows import commit_rows
from tests.queries.spark.questions import Questions
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.spark.tables import open_lake
from tonlake.queries.loader import NamedQuery, load_queries, needs_duckdb
from tonlake.queries.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


pytestmark = pytest.mark.long

NAMES = sorted(name for name, query in load_queries().items() if not needs_duckdb(query))


class Engines(NamedTuple):
    """One lake, read by both engines, and the parameters for it."""

    here: Reader
    spark: Any
    questions: Questions


def _open(spark: SparkSession, lake: Path) -> Engines:
    from tonlake.queries.spark.reader import SparkReader  # noqa: PLC0415 - needs an extra

    snapshot = open_snapshot(lake)
    connection = connect(snapshot)
    reader = Reader(snapshot, open_views(snapshot))
    return Engines(reader, SparkReader(open_lake(spark, str(lake))), Questions(connection))


@pytest.fixture(scope="module")
def lakes(
    spark: SparkSession, demo_lake: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Engines, ...]:
    """The demo, and a lake of random rows, which has rows in every table."""
    random = tmp_path_factory.mktemp("random")
    for first, last in ((1, 10), (16, 20)):
        commit_rows(random, first, last)
    return _open(spark, demo_lake), _open(spark, random)


def _arrange(query: NamedQuery, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the row order of a query that defines one."""
    if re.search(r"^order by", query.sql, re.MULTILINE):
        return rows
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


@pytest.mark.parametrize("name", NAMES)
def test_spark_gives_the_same_answer(lakes: tuple[Engines, ...], name: str) -> None:
    query = load_queries()[name]
    most = 0
    for here, spark, questions in lakes:
        for given in (questions.required(query), questions.filtered(query)):
            expected = _arrange(query, here.rows(name, **given))
            assert _arrange(query, spark.rows(name, **given)) == expected
            most = max(most, len(expected))
    assert most > 0
