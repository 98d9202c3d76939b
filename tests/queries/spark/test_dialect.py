"""Macros are expanded for Spark: no query or view has a macro call left."""

import re

import pytest

from tonlake.lake.duck.connection import DERIVED_VIEWS, read_sql
from tonlake.queries.loader import load_queries, needs_duckdb

sqlglot = pytest.importorskip("sqlglot")

MACROS = {"query_table", *re.findall(r"macro (\w+)\(", read_sql("query_macros"))}
TEXTS = {query.name: query.sql for query in load_queries().values() if not needs_duckdb(query)}
VIEWS = {name: read_sql(name) for name in DERIVED_VIEWS}


@pytest.mark.parametrize("name", [*TEXTS, *VIEWS])
def test_no_macro_is_left(name: str) -> None:
    from tonlake.queries.spark.reader import expand_macros  # noqa: PLC0415 - needs an extra

    tree = sqlglot.parse((TEXTS | VIEWS)[name], read="duckdb")[0]
    expanded = expand_macros(tree).sql("duckdb").lower()
    assert not [macro for macro in MACROS if f"{macro}(" in expanded]


def test_arguments_take_the_place_of_parameters() -> None:
    from tonlake.queries.spark.reader import expand_macros  # noqa: PLC0415 - needs an extra

    tree = sqlglot.parse_one("select a from t where in_list(a, $x)", read="duckdb")
    expected = "SELECT a FROM t WHERE (a IN (SELECT UNNEST($x)))"
    assert expand_macros(tree).sql("duckdb") == expected
