"""Runs named queries on one snapshot of a lake with Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.duck.connection import VIEWED_TABLES, read_bases, read_sql
from tonlake.queries.errors import QueryUnknown
from tonlake.queries.loader import load_queries, needs_duckdb
from tonlake.queries.parameter import bind_parameters
from tonlake.queries.spark.dialect import list_tables, translate_query, translate_view

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from tonlake.lake.spark.tables import SparkLake


class SparkReader:
    """Runs the queries of ``queries/`` over one lake with Spark."""

    def __init__(self, lake: SparkLake) -> None:
        self._lake = lake
        self._views: set[str] = set()

    def ask(self, name: str, **parameters: object) -> DataFrame:
        """Return the result of a query as a data frame; errors as ``translate``'s."""
        statement = translate(name, **parameters)
        for view in list_tables(statement):
            self._add_view(view)
        return self._lake.session.sql(statement)

    def table(self, name: str, **parameters: object) -> pa.Table:
        """Run a query and collect the result as an Arrow table."""
        return self.ask(name, **parameters).toArrow()

    def rows(self, name: str, **parameters: object) -> list[dict[str, Any]]:
        """Run a query and return a dict per row, like ``Reader.rows``."""
        found: list[dict[str, Any]] = self.table(name, **parameters).to_pylist()
        return found

    def _add_view(self, name: str) -> None:
        if name in self._views:
            return
        self._views.add(name)
        if name in VIEWED_TABLES:
            frame = self._lake.read(VIEWED_TABLES[name].name)
        else:
            for base in read_bases(name):
                self._add_view(base)
            statement = translate_view(name, read_sql(name))
            frame = self._lake.session.sql(statement)
        frame.createOrReplaceTempView(name)


def translate(name: str, **parameters: object) -> str:
    """Return a named query in Spark's SQL, or raise QueryUnknown or ParameterMismatch."""
    query = load_queries().get(name)
    if query is None:
        raise QueryUnknown(f"no query is called {name!r}; see queries/**/*.sql")
    if needs_duckdb(query):
        raise QueryUnknown(f"{name} needs functions of DuckDB: run it with tonlake query")
    return translate_query(query, bind_parameters(query, parameters))
