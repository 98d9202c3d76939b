"""Composed SQL text: DuckDB reads any value back unchanged."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.duck.statement import Name, fill_statement, join_scripts

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(TEXTS, TEXTS)
def test_values_are_quoted(value: str, name: str) -> None:
    text = fill_statement("select {value} as {name}", value=value, name=Name(name))
    with duckdb.connect() as connection:
        cursor = connection.execute(text)
        assert cursor.description is not None
        assert [cursor.description[0][0], cursor.fetchone()] == [name, (value,)]


def test_every_placeholder_needs_a_value() -> None:
    with pytest.raises(KeyError):
        fill_statement("drop schema {schema}")


def test_scripts_follow_each_other() -> None:
    assert join_scripts(["select 1; -- first", "select 2;"]) == "select 1; -- first\nselect 2;"
