"""Statements with inlined values mean the same as with DuckDB parameters."""

import duckdb
import pytest

from tonlake.queries.parameter import put_values


@pytest.mark.parametrize(
    "statement",
    [
        "select $x as n, '$x' as t",
        """select 1 as "a$x", $x as n""",
        "select /* it's\n$x */ $x as n, 'q' as t",
        "select 1 -- it's $x\n, $x as n, 'q' as t",
        "select $$ it's $x $$ as t, $x as n",
        "select $tag$ it's $x $$ $tag$ as t, $x as n",
        "select $x as n, $xy as m, 'it''s $x' as t",
    ],
)
def test_a_parameter_is_one_where_duckdb_has_one(statement: str) -> None:
    values = {"x": 5, "xy": "it's"} if "$xy" in statement else {"x": 5}
    with duckdb.connect() as connection:
        expected = connection.execute(statement, values)
        names, rows = expected.description, expected.fetchall()
        found = connection.execute(put_values(statement, values))
        assert [each[0] for each in found.description] == [each[0] for each in names]
        assert found.fetchall() == rows
