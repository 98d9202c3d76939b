"""Composed SQL text: DuckDB reads any value back unchanged."""

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.duck.statement import join_scripts, quote, quote_name

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(TEXTS, TEXTS)
def test_values_are_quoted(value: str, name: str) -> None:
    text = join_scripts(["select -- no", f"{quote(value)} as {quote_name(name)}"])
    with duckdb.connect() as connection:
        cursor = connection.execute(text)
        assert cursor.description is not None
        assert [cursor.description[0][0], cursor.fetchone()] == [name, (value,)]
